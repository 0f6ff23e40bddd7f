"""True poses out of simulators' messages, against simulators' own arithmetic done again by hand."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

pytest.importorskip("pymavlink")

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.bridge.ground_truth import GroundTruth
from wordwing.flight.bridge.sitl import ORIGIN

HZ = 100
HOME = ORIGIN


def walk(seconds: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities [N, 3], north, east, down, of a drone that flies about smoothly within 2 m."""
    times = np.arange(0, seconds, 1 / HZ)
    rng = np.random.default_rng(seed)
    position, velocity = np.zeros((2, len(times), 3))
    for axis in range(3):
        for _wave in range(4):
            size, pace, phase = rng.uniform(0.1, 0.5), rng.uniform(0.2, 1.2), rng.uniform(0, math.tau)
            position[:, axis] += size * (np.sin(pace * times + phase) - math.sin(phase))
            velocity[:, axis] += size * pace * np.cos(pace * times + phase)
    return position, velocity


def sim_state(position: np.ndarray, velocity: np.ndarray, q: tuple[float, ...] = (1, 0, 0, 0)) -> object:
    """As ArduPilot makes it: whole units from home, cut off, to degrees and back, cut off again."""
    home_lat, home_lon = int(HOME[0] * 1e7), int(HOME[1] * 1e7)
    metres = 0.011131884502145034
    north = int(position[0] / metres)
    scale = math.cos((home_lat + north / 2) * 1e-7 * math.pi / 180)
    east = int(position[1] / metres / scale)
    lat, lon = int((home_lat + north) * 1e-7 * 1e7), int((home_lon + east) * 1e-7 * 1e7)
    alt = int(HOME[2] * 100 - position[2] * 100) * 1e-2
    return mavlink.MAVLink_sim_state_message(
        *q, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, alt, 0, 0, *velocity, lat_int=lat, lon_int=lon
    )


def hil_state(position: np.ndarray, velocity: np.ndarray, q: tuple[float, ...] = (1, 0, 0, 0)) -> object:
    """As PX4 makes it: a place on the ellipsoid, found by walking along its normal frame, cut off to whole units."""
    a, e2 = 6378137.0, 6.69437999014e-3
    lat, lon, alt = math.radians(HOME[0]), math.radians(HOME[1]), HOME[2]
    n = a / math.sqrt(1 - e2 * math.sin(lat) ** 2)
    first = np.array([(n + alt) * math.cos(lat) * math.cos(lon), (n + alt) * math.cos(lat) * math.sin(lon), 0])
    first[2] = (n * (1 - e2) + alt) * math.sin(lat)
    down = -np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])
    east = np.array([-math.sin(lon), math.cos(lon), 0])
    north = np.cross(east, down)
    x, y, z = first + position[0] * north + position[1] * east + position[2] * down
    found, flat = lat, math.hypot(x, y)
    for _round in range(6):
        n = a / math.sqrt(1 - e2 * math.sin(found) ** 2)
        height = flat / math.cos(found) - n
        found = math.atan2(z, flat * (1 - e2 * n / (n + height)))
    units = int(math.degrees(found) * 1e7), int(math.degrees(math.atan2(y, x)) * 1e7), int(height * 1e3)
    speeds = [int(100 * speed) for speed in velocity]
    return mavlink.MAVLink_hil_state_quaternion_message(0, list(q), 0, 0, 0, *units, *speeds, 0, 0, 0, 0, 0)


MADE = {"ardupilot": sim_state, "px4": hil_state}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("autopilot", MADE)
def test_true_positions_are_within_a_centimetre_however_messages_cut_them_off(autopilot: str, seed: int) -> None:
    truth, rng = GroundTruth(autopilot), np.random.default_rng(seed)  # type: ignore[arg-type]
    position, velocity = walk(20.0, seed)
    errors = []
    for index in range(len(position)):
        late = rng.exponential(0.002)  # a busy machine
        moment = truth.update(MADE[autopilot](position[index], velocity[index]), index / HZ + late)
        assert moment is not None
        north, west, up = moment.pose.position.tolist()
        errors.append(np.array([north, -west, -up]) - position[index])
    shift = np.median(errors, axis=0)  # the first place is the origin, wherever it is within its step
    assert np.abs(shift).max() < 0.012
    assert np.linalg.norm(np.array(errors) - shift, axis=1).max() < 0.012
    assert np.linalg.norm(np.array(errors) - shift, axis=1).mean() < 0.005


@pytest.mark.parametrize("autopilot", MADE)
def test_a_drone_at_rest_does_not_creep(autopilot: str) -> None:
    truth = GroundTruth(autopilot)  # type: ignore[arg-type]
    message = MADE[autopilot](np.array([0.537, -1.204, -0.7]), np.zeros(3))
    places = [truth.update(message, index / HZ).pose.position for index in range(300)]  # type: ignore[union-attr]
    assert all((place == places[0]).all() for place in places)


@pytest.mark.parametrize("autopilot", MADE)
def test_velocities_and_turns_have_x_north_y_west_z_up(autopilot: str) -> None:
    turn = Rotation.from_euler("ZYX", [70, 20, -10], degrees=True)  # of an FRD body in NED
    x, y, z, w = turn.as_quat()
    message = MADE[autopilot](np.zeros(3), np.array([0.5, 0.25, -0.125]), (w, x, y, z))
    moment = GroundTruth(autopilot).update(message, 0.0)  # type: ignore[arg-type]
    assert moment is not None
    assert moment.velocity.tolist() == pytest.approx([0.5, -0.25, 0.125], abs=0.011)
    w, x, y, z = moment.pose.quaternion.tolist()
    ours = Rotation.from_quat([x, y, z, w])
    flip = np.diag([1.0, -1.0, -1.0])
    assert ours.as_matrix() == pytest.approx(flip @ turn.as_matrix() @ flip, abs=1e-6)


def test_other_messages_tell_nothing() -> None:
    assert GroundTruth("ardupilot").update(mavlink.MAVLink_heartbeat_message(2, 3, 0, 0, 3, 3), 0.0) is None
