import errno
import json
import os
import threading
import time
import warnings
from pathlib import Path

import pytest
import torch

from killing import victims
from wordwing.errors import WordwingError
from wordwing.execution.packing import PackedExecutions
from wordwing.learning.runtime.messages import (
    MAX_UNREAD,
    DirectLink,
    FolderLink,
    Heartbeat,
    Link,
    Parameters,
    Rollouts,
    read_heartbeat,
)


@pytest.fixture(params=["direct", "folder"])
def ends(request, tmp_path) -> tuple[Link, Link]:
    """What Process A holds, and what Process B holds."""
    if request.param == "direct":
        link = DirectLink()
        return link, link
    return FolderLink(tmp_path / "exchange"), FolderLink(tmp_path / "exchange")


def parameters(version, value=0.0):
    return Parameters(version, {"vision.weight": torch.full((2, 3), value), "count": torch.tensor(7)})


def packed(first) -> PackedExecutions:
    rows = torch.arange(24).reshape(4, 6).short() + first
    return PackedExecutions.from_rows(rows, torch.tensor([3, 1]))


def two_rollouts(first, progress=0.25):
    """Two rollouts, of 3 and 1 poses, of the instructions `first` and `first` + 1."""
    return Rollouts(torch.tensor([first, first + 1]), packed(first), progress)


def messages(folder):
    return sorted(os.listdir(folder))


def test_parameters_arrive_as_they_were_sent(ends):
    a, b = ends
    assert b.newest_parameters(-1) is None
    a.send_parameters(parameters(4, 1.5))
    found = b.newest_parameters(-1)
    assert found.version == 4
    assert set(found.weights) == {"vision.weight", "count"}
    assert torch.equal(found.weights["vision.weight"], torch.full((2, 3), 1.5))
    assert torch.equal(found.weights["count"], torch.tensor(7))


def test_only_parameters_of_later_updates_are_given_and_only_the_newest(ends):
    a, b = ends
    for update in (3, 4, 9):
        a.send_parameters(parameters(update, float(update)))
    assert b.newest_parameters(9) is None
    assert b.newest_parameters(8).version == 9
    assert b.newest_parameters(8).version == 9, "asking again gives it again"
    assert b.newest_parameters(9) is None
    a.send_parameters(parameters(10))
    assert b.newest_parameters(9).version == 10


def test_what_the_sender_changes_later_does_not_change_the_message(ends):
    a, b = ends
    sent = parameters(1, 1.0)
    tied = sent.weights["vision.weight"]
    sent.weights["tied"] = tied
    a.send_parameters(sent)
    rollouts = two_rollouts(5)
    b.send_rollouts(rollouts)
    tied.fill_(9)
    rollouts.executions.poses.fill_(9)
    found = b.newest_parameters(0).weights
    assert torch.equal(found["vision.weight"], torch.ones(2, 3))
    assert torch.equal(found["tied"], torch.ones(2, 3))
    assert torch.equal(a.take_rollouts()[0].executions.rows(), packed(5).rows())


def test_executions_arrive_once_and_in_order(ends):
    a, b = ends
    assert a.take_rollouts() == []
    for first in range(12):  # more than nine: names are not sorted as numbers are
        b.send_rollouts(two_rollouts(first, first / 12))
    found = a.take_rollouts()
    assert [message.progress for message in found] == [first / 12 for first in range(12)]
    for first, message in enumerate(found):
        assert torch.equal(message.example, torch.tensor([first, first + 1]))
        assert torch.equal(message.executions.rows(), packed(first).rows())
        assert message.executions.poses.dtype == torch.int16
        assert torch.equal(message.executions.lengths, torch.tensor([3, 1]))
    assert a.take_rollouts() == []
    b.send_rollouts(two_rollouts(3))
    assert len(a.take_rollouts()) == 1


@pytest.mark.parametrize("count", [MAX_UNREAD // 2 + 5, MAX_UNREAD, MAX_UNREAD + 3])
def test_of_executions_that_nobody_takes_the_newest_64_are_kept(ends, count):
    a, b = ends
    for first in range(count):
        b.send_rollouts(two_rollouts(first))
    found = [int(message.example[0]) for message in a.take_rollouts()]
    assert found == list(range(count))[-64:]


def test_no_executions_are_a_message_too(ends):
    a, b = ends
    nothing = torch.empty(0, dtype=torch.int64)
    b.send_rollouts(Rollouts(nothing, PackedExecutions(torch.empty(0, 1, 6, dtype=torch.int16), nothing), 1.0))
    [found] = a.take_rollouts()
    assert found.executions.rows().shape == (0, 6)


@pytest.mark.parametrize(
    "change",
    [
        {"lengths": torch.tensor([3, 4])},
        {"lengths": torch.tensor([3, 0])},
        {"lengths": torch.tensor([3])},
        {"example": torch.tensor([1.0, 2.0])},
        {"poses": torch.zeros(2, 3, 5, dtype=torch.int16)},
        {"poses": torch.zeros(2, 3, 6, dtype=torch.int32)},
        {"progress": 1.5},
        {"progress": float("nan")},
    ],
)
def test_executions_that_do_not_fit_together_are_no_message(change):
    fields = {"example": torch.tensor([0, 1]), "poses": packed(0).poses, "lengths": packed(0).lengths, "progress": 0.25}
    given = fields | change
    with pytest.raises(ValueError, match=r"do not fit|other dtypes"):
        Rollouts(given["example"], PackedExecutions(given["poses"], given["lengths"]), given["progress"])


def test_a_new_sender_goes_on_behind_what_an_earlier_one_left(tmp_path):
    FolderLink(tmp_path).send_rollouts(two_rollouts(1))
    FolderLink(tmp_path).send_rollouts(two_rollouts(2))
    assert [int(message.example[0]) for message in FolderLink(tmp_path).take_rollouts()] == [1, 2]
    assert messages(tmp_path) == []


def test_half_messages_of_killed_senders_are_removed_by_the_next_of_their_kind(tmp_path):
    for name in (".rollouts-000000001-abcd1234.safetensors", ".parameters-abcd1234.safetensors"):
        (tmp_path / name).write_bytes(b"half")
    link = FolderLink(tmp_path)
    assert link.take_rollouts() == []
    assert link.newest_parameters(-1) is None
    link.send_rollouts(two_rollouts(1))
    assert messages(tmp_path) == [".parameters-abcd1234.safetensors", "rollouts-000000001.safetensors"]
    link.send_parameters(parameters(1))
    assert messages(tmp_path) == ["parameters.safetensors", "rollouts-000000001.safetensors"]


def damages(data):
    """A message that is damaged in many ways."""
    yield from (b"", data[:5], data[:40], data[:-1], b"\xff" * 64, b"PK" + data)
    yield data.replace(b'"__metadata__"', b'"__metadatb__"')
    yield data.replace(b'"progress"', b'"prugress"').replace(b'"version"', b'"versoin"')
    yield data.replace(b'"0.25"', b'"x.25"').replace(b'"version":"3"', b'"version":"x"')


def test_damaged_messages_are_dropped_with_a_warning(tmp_path):
    a, b = FolderLink(tmp_path), FolderLink(tmp_path)
    a.send_parameters(parameters(3))
    b.send_rollouts(two_rollouts(0))
    weights, rollouts = (path.read_bytes() for path in (tmp_path / name for name in messages(tmp_path)))
    for number, damaged in enumerate(damages(rollouts)):
        (tmp_path / f"rollouts-{number:09d}.safetensors").write_bytes(damaged)
        (tmp_path / f"rollouts-{number + 1:09d}.safetensors").write_bytes(rollouts)
        with pytest.warns(RuntimeWarning, match=r"rollouts-.* damaged and is dropped"):
            assert len(a.take_rollouts()) == 1
        assert messages(tmp_path) == ["parameters.safetensors"]
    for damaged in damages(weights):
        (tmp_path / "parameters.safetensors").write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match=r"parameters\.safetensors: a message was damaged"):
            assert b.newest_parameters(-1) is None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert b.newest_parameters(-1) is None
            assert b.newest_parameters(-2) is None
    a.send_parameters(parameters(3))
    assert b.newest_parameters(-1).version == 3


def test_a_message_with_other_numbers_than_rollouts_have_is_dropped(tmp_path):
    link = FolderLink(tmp_path)
    link.send_rollouts(two_rollouts(0))
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b'"I16","shape":[4,6]', b'"I16","shape":[6,4]'))
    with pytest.warns(RuntimeWarning, match="shapes do not fit"):
        assert link.take_rollouts() == []


@pytest.mark.parametrize("lengths", [[6, -2], [-2, 6], [4, 0]])
def test_a_message_whose_lengths_only_sum_up_is_dropped(tmp_path, lengths):
    link = FolderLink(tmp_path)
    link.send_rollouts(two_rollouts(0))
    [path] = tmp_path.iterdir()
    sent, damaged = (torch.tensor(values).numpy().tobytes() for values in ([3, 1], lengths))
    assert path.read_bytes().count(sent) == 1
    path.write_bytes(path.read_bytes().replace(sent, damaged))
    with pytest.warns(RuntimeWarning, match="numbers do not fit"):
        assert link.take_rollouts() == []


def test_a_folder_in_the_place_of_a_message_ends_nothing(tmp_path):
    (tmp_path / "parameters.safetensors").mkdir()
    (tmp_path / "rollouts-000000001.safetensors").mkdir()
    link = FolderLink(tmp_path)
    with pytest.warns(RuntimeWarning):
        assert link.take_rollouts() == []
    with pytest.warns(RuntimeWarning):
        assert link.newest_parameters(-1) is None


def test_a_full_disk_is_one_sentence_and_leaves_the_messages_before(tmp_path, monkeypatch):
    link = FolderLink(tmp_path)
    link.send_parameters(parameters(3))
    link.send_rollouts(two_rollouts(0))
    before = messages(tmp_path)

    def full(_path, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(WordwingError, match=r"parameters\.safetensors: the disk is full"):
            link.send_parameters(parameters(4))
        with pytest.raises(WordwingError, match="the disk is full"):
            link.send_rollouts(two_rollouts(1))
    assert messages(tmp_path) == before
    assert link.newest_parameters(-1).version == 3
    assert len(link.take_rollouts()) == 1


SETUP = """
import time
import torch
from wordwing.learning.runtime.messages import FolderLink, Parameters, Rollouts
from wordwing.execution.packing import PackedExecutions
torch.set_num_threads(1)
folder = {folder!r}
"""

SEND_FOR_EVER = """
link = FolderLink(folder)
newest = FolderLink(folder).newest_parameters(-1)
update = newest.version if newest else 0
say(update)
while True:
    while len(link._waiting()) > 32:  # a receiver that is held up for long would lose the oldest
        time.sleep(0.001)
    update += 1
    value = torch.full((20_000,), float(update))
    link.send_parameters(Parameters(update, {"a": value, "b": value}))
    lengths = torch.full((5,), 1 + update % 3)
    rows = torch.full((int(lengths.sum()), 6), update % 2**15).short()
    link.send_rollouts(Rollouts(torch.full((5,), update), PackedExecutions.from_rows(rows, lengths), 0.5))
    say(update)
"""


def test_killed_senders_leave_whole_messages_only(tmp_path, rng):
    folder = tmp_path / "exchange"
    taken, updates, stopping = [], [], threading.Event()

    def receive():
        link, after = FolderLink(folder), -1
        while True:
            last = stopping.is_set()
            for message in link.take_rollouts():
                update = int(message.example[0])
                taken.append(update)
                assert bool((message.example == update).all())
                assert message.executions.lengths.tolist() == [1 + update % 3] * 5
                assert bool((message.executions.rows() == update % 2**15).all())
            if (found := link.newest_parameters(after)) is not None:
                after = found.version
                updates.append(after)
                assert bool((found.weights["a"] == after).all() and (found.weights["b"] == after).all())
            if last:
                return
            time.sleep(0.002)

    failures = []

    def receiver():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                receive()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=receiver, daemon=True)
    thread.start()
    begun, finished = [], []
    with victims(SETUP.format(folder=str(folder)), SEND_FOR_EVER) as children:
        for _kill in range(20):
            found, *lines = map(int, children.kill_one_after(rng.uniform(0, 0.1)))
            begun.append(found)
            finished += lines
    stopping.set()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert failures == []
    assert taken == sorted(taken)
    assert set(finished) <= set(taken) <= {*finished, *(update + 1 for update in begun + finished)}
    assert updates == sorted(set(updates))
    newest = max(begun + finished)
    assert updates[-1] in (newest, newest + 1)
    assert len(finished) > 10
    half = [name for name in messages(folder) if name.startswith(".")]
    assert len(half) <= 2, "each new sender removes what the killed one left"


RECEIVE_FOR_EVER = """
link = FolderLink(folder)
say("ready")
while True:
    for message in link.take_rollouts():
        say(int(message.example[0]))
    link.newest_parameters(-1)
"""


def test_killed_receivers_lose_no_more_than_what_they_had_taken(tmp_path, rng):
    folder = tmp_path / "exchange"
    link, sent, stopping = FolderLink(folder), [], threading.Event()

    def send():
        while not stopping.is_set():
            link.send_rollouts(two_rollouts(len(sent)))
            link.send_parameters(parameters(len(sent)))
            sent.append(len(sent))
            time.sleep(0.005)

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    taken = []
    kills = 12
    with victims(SETUP.format(folder=str(folder)), RECEIVE_FOR_EVER) as children:
        for _kill in range(kills):
            lines = children.kill_one_after(rng.uniform(0, 0.1))
            taken.append([int(line) for line in lines[1:]])
    stopping.set()
    thread.join(timeout=20)
    assert not thread.is_alive()
    rest = [int(message.example[0]) for message in FolderLink(folder).take_rollouts()]
    everything = [first for part in taken for first in part] + rest
    assert all(part == sorted(part) for part in taken)
    assert rest == sorted(rest)
    # A message is deleted after it was read: one that was read but not deleted comes twice.
    assert len(everything) - len(set(everything)) <= kills
    assert sent[-1] in everything
    assert FolderLink(folder).newest_parameters(-1).version == sent[-1]


def test_a_heartbeat_is_written_at_most_once_a_second(tmp_path):
    now = [100.0]
    heartbeat = Heartbeat(tmp_path / "exchange", "a", clock=lambda: now[0])
    assert read_heartbeat(tmp_path / "exchange", "a") is None
    heartbeat.beat({"done": 1, "rates": {"contexts/s": torch.tensor(2.5)}})
    found = read_heartbeat(tmp_path / "exchange", "a")
    assert found["done"] == 1
    assert found["rates"] == {"contexts/s": 2.5}
    assert abs(found["time"] - time.time()) < 10
    now[0] += 0.9
    heartbeat.beat({"done": 2})
    assert read_heartbeat(tmp_path / "exchange", "a")["done"] == 1
    heartbeat.beat({"done": 3}, force=True)
    assert read_heartbeat(tmp_path / "exchange", "a")["done"] == 3
    now[0] += 1.1
    heartbeat.beat({"done": 4})
    assert read_heartbeat(tmp_path / "exchange", "a")["done"] == 4
    assert read_heartbeat(tmp_path / "exchange", "b") is None


def test_a_heartbeat_that_is_not_due_looks_at_no_tensor(tmp_path):
    class Untouchable:
        def __float__(self) -> float:
            raise AssertionError("a wait for the device")

    heartbeat = Heartbeat(tmp_path, "a")
    heartbeat.beat({})
    heartbeat.beat({"loss": Untouchable()})


def test_a_new_process_has_no_heartbeat_of_the_one_before(tmp_path):
    Heartbeat(tmp_path, "a").beat({"done": 400})
    Heartbeat(tmp_path, "b").beat({"done": 300})
    (tmp_path / ".a-abcd1234.json").write_text("{")
    Heartbeat(tmp_path, "a")
    assert read_heartbeat(tmp_path, "a") is None
    assert read_heartbeat(tmp_path, "b")["done"] == 300
    assert messages(tmp_path) == ["b.json"]


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 100_000, "\xff"])
def test_a_heartbeat_that_cannot_be_read_is_none(tmp_path, text):
    (tmp_path / "a.json").write_text(text, "latin-1")
    assert read_heartbeat(tmp_path, "a") is None


def test_a_full_disk_stops_no_heartbeat_and_the_old_file_can_still_say_so(tmp_path, monkeypatch):
    heartbeat = Heartbeat(tmp_path, "a")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        heartbeat.beat({"done": 1}, force=True)
        assert messages(tmp_path) == []
    heartbeat.beat({"done": 2, "metrics": {"a long name": 1.0}}, force=True)
    monkeypatch.setattr(Path, "write_text", full)
    heartbeat.beat({"error": "the disk is full"}, force=True)
    found = json.loads((tmp_path / "a.json").read_bytes())
    assert found.keys() == {"time", "error"}
    assert messages(tmp_path) == ["a.json"]
