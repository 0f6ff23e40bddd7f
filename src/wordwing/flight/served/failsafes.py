"""When the served lab's autopilot lands by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wordwing.flight.served.autopilot import ServedAutopilot

RETURN, LAND, HOLD = 3, 4, 5
"""COM_OBL_RC_ACT; below RETURN it waits for the sticks."""


def protect(autopilot: ServedAutopilot) -> None:
    """Land a drone in the air if one of its clocks has run out; one that lands already is left alone."""
    if autopilot.landing:
        return
    if autopilot.given_up:
        autopilot.land_because("EKF Failsafe")
    elif autopilot.personality.name == "ardupilot":
        _as_ardupilot(autopilot)
    else:
        _as_px4(autopilot)


def _as_ardupilot(autopilot: ServedAutopilot) -> None:
    parameters = autopilot.parameters
    # In a pilot's modes a lost ground station means nothing (FS_OPTIONS 16); BRAKE is none of them.
    watches = autopilot.mode.name not in autopilot.personality.pilot_modes
    if watches and parameters["FS_GCS_ENABLE"] and _unheard(autopilot, parameters["FS_GCS_TIMEOUT"]):
        autopilot.land_because("GCS Failsafe")
    elif parameters["BATT_FS_LOW_ACT"] and autopilot.volts < parameters["BATT_LOW_VOLT"]:
        _spare_battery(autopilot, "Battery Failsafe")


def _as_px4(autopilot: ServedAutopilot) -> None:
    parameters = autopilot.parameters
    by_itself = autopilot.mode.kind in ("guided", "takeoff")
    if autopilot.mode.kind == "guided" and autopilot.time - autopilot.last_setpoint > parameters["COM_OF_LOSS_T"]:
        _lose_offboard(autopilot, int(parameters["COM_OBL_RC_ACT"]))
    elif by_itself and parameters["NAV_DLL_ACT"] and _unheard(autopilot, parameters["COM_DL_LOSS_T"]):
        autopilot.land_because("Data link lost")
    elif parameters["COM_LOW_BAT_ACT"] >= 2 and autopilot.battery / 100 < parameters["BAT_CRIT_THR"]:
        _spare_battery(autopilot, "Critical battery")


def _unheard(autopilot: ServedAutopilot, limit: float) -> bool:
    """Whether someone who has been heard is silent now."""
    return autopilot.gcs_heard is not None and autopilot.time - autopilot.gcs_heard > limit


def _spare_battery(autopilot: ServedAutopilot, why: str) -> None:
    if not autopilot.battery_acted:
        autopilot.battery_acted = True
        autopilot.land_because(why)


def _lose_offboard(autopilot: ServedAutopilot, action: int) -> None:
    if action in (RETURN, LAND):  # there is nowhere to return to
        autopilot.land_because("No offboard control")
    else:
        autopilot.enter(autopilot.personality.mode("LOITER" if action == HOLD else "POSCTL"))
        autopilot.failsafe = "No offboard control"
