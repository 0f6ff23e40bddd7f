"""Orders, pilot and parameters by themselves."""

import math

import pytest

from wordwing.errors import WordwingError
from wordwing.flight.guardian.protocol import (
    KINDS,
    Decision,
    Hold,
    KeepAlive,
    PilotDisconnected,
    TakeOff,
    from_json,
    to_json,
)
from wordwing.flight.guardian.safety import Timeouts
from wordwing.flight.guardian.setpoints import SetpointTimeout
from wordwing.flight.mavlink.flight_stacks import ARDUPILOT, PX4
from wordwing.flight.mavlink.messages import MessageFactory
from wordwing.flight.mavlink.parameters import ParameterCheck
from wordwing.flight.mavlink.parse_message import ParameterValue


def test_orders_come_back_from_json():
    decision = Decision(0.5, -0.25, 10.0, 10.1)
    written = {"order": "decision", "forward": 0.5, "yaw_rate": -0.25, "image_time": 10.0, "made_at": 10.1}
    assert to_json(decision) == written
    assert from_json(written) == decision
    for kind in KINDS.values():
        if kind is not Decision:
            assert from_json(to_json(kind())) == kind()


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"order": "explode"}, 'must be one of take off, decision, .*, not "explode"'),
        ([], "not a list"),
        (None, "not null"),
        ({"order": ["land"]}, "not a list"),
        ({"order": "decision", "forward": 0.5}, "yaw_rate of a decision must be a number, not null"),
        ({"order": "decision", "forward": True}, "forward of a decision must be a number, not true"),
        ({"order": "decision", "forward": "0.5"}, "forward of a decision must be a number"),
    ],
)
def test_other_json_is_refused_in_a_sentence(document, sentence):
    with pytest.raises(WordwingError, match=sentence):
        from_json(document)


def test_a_wish_is_the_newest_decision_until_it_is_too_old():
    pilot = SetpointTimeout(Timeouts())
    pilot.begin(0.0)
    assert pilot.current(0.0) is None
    first, second = Decision(0.1, 0, 0.9, 1.0), Decision(0.2, 0, 1.1, 1.2)
    assert pilot.update(first, 1.0) is None
    assert pilot.update(second, 1.25) is None
    assert pilot.current(1.79) is second
    assert pilot.current(1.8) is None
    assert pilot.idle(4.79) is None
    assert pilot.idle(4.8) is not None


@pytest.mark.parametrize(
    ("decision", "why"),
    [
        (Decision(20.0, 0.0, 0.9, 1.0), "no sound policy decides on 20 m/s and 0 rad/s"),
        (Decision(0.5, -20.0, 0.9, 1.0), "no sound policy decides on 0.5 m/s and -20 rad/s"),
        (Decision(0.5, 0.0, 0.49, 1.0), "the image was 0.51 s old when it was decided"),
        (Decision(0.5, 0.0, 1.06, 1.0), "the image was -0.06 s old when it was decided"),
        (Decision(0.5, 0.0, 1.04, 1.0), None),  # clocks agree to a few hundredths of a second
    ],
)
def test_one_thing_wrong_is_enough_to_refuse_a_decision(decision, why):
    pilot = SetpointTimeout(Timeouts())
    pilot.begin(0.9)
    assert pilot.update(decision, 1.0) == why
    assert (pilot.current(1.0) is None) == (why is not None)


def test_broken_decisions_do_not_prolong_a_hover():
    pilot = SetpointTimeout(Timeouts())
    pilot.begin(0.0)
    for tick in range(59):
        assert pilot.update(Decision(0.5, 0, 0.0, math.nan), 0.05 * tick) is not None
        assert pilot.idle(0.05 * tick) is None
    assert pilot.idle(3.0) == "it has hovered for 3 s: the decision is nan s old"


def test_a_decision_ends_a_hover_on_purpose():
    pilot = SetpointTimeout(Timeouts())
    pilot.begin(0.0)
    for second in range(29):
        pilot.update(Hold(), float(second))
    pilot.update(Decision(0.5, 0, 28.9, 29.0), 29.0)
    pilot.update(Hold(), 29.5)
    assert pilot.idle(30.5) is None


def test_a_pilot_is_present_for_a_second_after_its_last_word():
    pilot = SetpointTimeout(Timeouts())
    assert not pilot.present(0.0)
    pilot.update(TakeOff(), 5.0)
    assert pilot.present(5.99)
    assert pilot.absent(5.99) is None
    assert not pilot.present(6.0)
    assert pilot.absent(6.0) == "the pilot has been silent for 1.0 s"
    pilot.update(KeepAlive(), 6.5)
    assert pilot.present(6.6)
    pilot.update(PilotDisconnected(), 6.7)
    assert not pilot.present(6.7)
    assert pilot.absent(7.69) is None
    assert pilot.absent(7.7) == "the pilot is gone"


def names(messages) -> list[str]:
    return [message.param_id for message in messages]


def test_parameters_are_asked_for_a_few_at_a_time_and_again():
    parameters, factory = ParameterCheck(ARDUPILOT), MessageFactory(ARDUPILOT, 1)
    asked = names(parameters.due(factory, 0.0))
    assert asked == ["GUID_TIMEOUT", "FS_GCS_ENABLE", "FS_GCS_TIMEOUT", "MAV_GCS_SYSID"]
    asked += [name for now in (0.05, 0.1, 0.15) for name in names(parameters.due(factory, now))]
    assert len(asked) == len(set(asked)) == len(ARDUPILOT.wanted) + 2  # two have an older name
    assert parameters.due(factory, 0.3) == []
    parameters.update(ParameterValue("GUID_TIMEOUT", 0.5, 9))
    assert "GUID_TIMEOUT" not in names(parameters.due(factory, 0.45))
    assert not parameters.complete


def test_a_finding_says_what_is_and_what_must_be():
    parameters = ParameterCheck(PX4)
    parameters.update(ParameterValue("COM_OF_LOSS_T", 1.0, 9))
    found = {finding.name: finding for finding in parameters.findings()}
    assert str(found["COM_OF_LOSS_T"]) == (
        "parameter COM_OF_LOSS_T is 1; it must be from 0 to 0.5, "
        "because it must notice soon that setpoints have stopped"
    )
    assert "NAV_RCL_ACT was not told by the autopilot; it must be 3" in str(found["NAV_RCL_ACT"])
    assert "COM_FAIL_ACT_T" not in found


def test_writes_are_in_the_units_of_the_name_that_the_autopilot_has():
    parameters, factory = ParameterCheck(ARDUPILOT), MessageFactory(ARDUPILOT, 1)
    parameters.update(ParameterValue("LAND_SPEED", 50.0, 4))
    (finding,) = parameters.write()
    assert (finding.name, finding.value, finding.write, finding.wanted) == ("LAND_SPEED", 50.0, 30.0, "from 20 to 30")
    writes = [m for m in parameters.due(factory, 0.0) if m.get_type() == "PARAM_SET"]
    assert [(m.param_id, m.param_value, m.param_type) for m in writes] == [("LAND_SPEED", 30.0, 4)]
    for _ in range(20):
        writes += [m for m in parameters.due(factory, 0.5 * len(writes)) if m.get_type() == "PARAM_SET"]
    assert len(writes) == 6
    parameters.update(ParameterValue("LAND_SPEED", 30.0, 4))
    assert parameters.write() == []
