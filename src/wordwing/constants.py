"""Numbers of the paper's arena and actions; this module imports nothing, so that every process can use it."""

ARENA_SIZE = 4.7
"""Edge of the square arena, metres; its coordinates run over [-2.35, 2.35] on both axes."""

ARENA_HALF = ARENA_SIZE / 2

CONTROL_PERIOD = 0.3
"""Seconds between two decisions, in simulated time; the authors' software averaged about this."""

FLIGHT_HEIGHT = 0.7
"""Height of the drone above the floor, metres."""

MAX_FORWARD = 0.7
"""Forward velocity runs over [0, 0.7] m/s (paper: Action Range)."""

MAX_YAW_RATE = 1.0
"""Yaw rate runs over [-1, 1] rad/s; positive turns left."""
