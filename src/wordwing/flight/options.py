"""Options of the command line for a drone over MAVLink."""

from dataclasses import dataclass
from pathlib import Path

PREFIX = "mavlink:"
"""Of a vehicle that is reached over MAVLink: `mavlink:udp:127.0.0.1:14550`."""

MOCAP = "udp:127.0.0.1:9005"
"""Where the guardian receives motion capture."""


@dataclass(frozen=True)
class DroneOptions:
    """How to reach a drone over MAVLink; for --vehicle mavlink:… only."""

    arena: Path = Path("arena.json")
    """Where the arena lies in the autopilot's local frame; wordwing flight check makes and checks it."""
    mocap: str = MOCAP
    """Where the guardian receives motion capture, which wordwing flight mocap copies there; without it nothing is
    armed."""
    camera: str = ""
    """The drone's camera: a device (/dev/video0), a stream (rtsp://…, udp://…, tcp://…) or a video."""
    calibration: Path = Path("camera.json")
    """The camera's calibration."""
    log: Path | None = None
    """Folder for the flight's log; by default one named by the time, under --out."""
    record: bool = False
    """Keep the camera's images in the log. They show people: ask them first."""
    yes: bool = False
    """Take off without asking; works only for a vehicle that says that it is wordwing's lab."""
    dry_run: bool = False
    """Never arm: look, decide, and print what would be sent."""
    set_parameters: bool = False
    """Write the autopilot's failsafe parameters where they are wrong, after showing old and new."""
    sign: Path | None = None
    """A file with a key of 64 hexadecimal digits for MAVLink 2 signing."""
    speed: float = 1.0
    """How many seconds pass in one: that of a lab served with --speed; 1 for anything else."""
