"""Starting an autopilot's SITL: its arguments, ports and parameters for a room with motion capture.

The parameters are those that `docs/flight.md` asks for indoors, and what the simulators themselves need. Failsafe
parameters keep their defaults: `wordwing fly --set-parameters` writes them, as it would on a real drone.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from wordwing.errors import WordwingError
from wordwing.flight.served.autopilot_profile import AutopilotName

ORIGIN = (53.6875, 13.4222, 40.0)
"""Latitude, longitude and altitude of the room. A little above powers of two, in units of 1e-7 degrees, nearly all
whole units survive ArduPilot's way to degrees and back (`ground_truth`); elsewhere four of ten do not."""

ARDUPILOT_PARAMETERS: dict[str, float] = {
    "LOG_BACKEND_TYPE": 0,  # opening a log at arming stops the simulation for a moment
    # A quadcopter that counts as calibrated, with a transmitter and a battery.
    "FRAME_CLASS": 1,
    "FRAME_TYPE": 0,
    "BATT_MONITOR": 4,
    "INS_ACCOFFS_X": 0.001,
    "INS_ACCOFFS_Y": 0.001,
    "INS_ACCOFFS_Z": 0.001,
    "INS_ACC2OFFS_X": 0.001,
    "INS_ACC2OFFS_Y": 0.001,
    "INS_ACC2OFFS_Z": 0.001,
    "COMPASS_OFS_X": 5,
    "COMPASS_OFS_Y": 13,
    "COMPASS_OFS_Z": -18,
    "MOT_THST_EXPO": 0.65,
    "MOT_THST_HOVER": 0.39,
    # The mode switch: STABILIZE before a flight, LOITER, BRAKE or STABILIZE to take over.
    "FLTMODE1": 0,
    "FLTMODE4": 17,
    "FLTMODE5": 5,
    "FLTMODE6": 0,
    # Indoors.
    "VISO_TYPE": 1,
    "EK3_SRC1_POSXY": 6,
    "EK3_SRC1_VELXY": 6,
    "EK3_SRC1_POSZ": 6,
    "EK3_SRC1_VELZ": 6,
    "EK3_SRC1_YAW": 6,
    "GPS1_TYPE": 0,
    "WP_SPD": 1,
    "WP_SPD_UP": 0.5,
    "WP_SPD_DN": 0.5,
    "WP_ACC": 1.5,
    # Older names of the same, in centimetres; each version leaves out what it does not know.
    "GPS_TYPE": 0,
    "WPNAV_SPEED": 100,
    "WPNAV_SPEED_UP": 50,
    "WPNAV_SPEED_DN": 50,
    "WPNAV_ACCEL": 150,
}

PX4_PARAMETERS: dict[str, float] = {
    "EKF2_EV_CTRL": 15,
    "EKF2_EVP_NOISE": 0.01,
    "EKF2_EVV_NOISE": 0.05,
    "EKF2_EVA_NOISE": 0.05,
    "EKF2_HGT_REF": 3,
    "EKF2_MAG_TYPE": 5,
    "SYS_HAS_GPS": 0,
    "SENS_EN_GPSSIM": 0,  # the simulated receiver
    "COM_RC_IN_MODE": 1,  # the transmitter is a joystick
    "SDLOG_MODE": -1,  # no log of its own
}

OUTPUT_TAIL = 300
"""How much of a simulation's output is shown when it fails, characters."""


@dataclass(frozen=True)
class SitlPorts:
    """URLs and ports of one simulation on this machine."""

    bridge: str
    """Link for the bridge: the truth, and a ground station's heartbeats."""
    pilot: str
    """Link for `wordwing fly`."""
    mocap: str
    """Link for `wordwing flight mocap`."""
    transmitter: int | None
    """UDP port for the sticks; None if they go over the bridge's link."""


def sitl_ports(autopilot: AutopilotName, instance: int = 0) -> SitlPorts:
    """Ports of the n-th simulation on this machine, by each autopilot's convention."""
    if autopilot == "ardupilot":
        base = 5760 + 10 * instance
        bridge, pilot, mocap = (f"tcp:127.0.0.1:{base + more}" for more in (0, 2, 3))
        return SitlPorts(bridge, pilot, mocap, 5501 + 10 * instance)
    bridge, pilot, mocap = (f"udpin:127.0.0.1:{port + instance}" for port in (19410, 14540, 14030))
    return SitlPorts(bridge, pilot, mocap, None)


class SitlProcess:
    """One autopilot's process, in a scratch folder and a process group of its own."""

    def __init__(
        self, autopilot: AutopilotName, binary: Path, instance: int = 0, parameters: Mapping[str, float] | None = None
    ) -> None:
        """Start it.

        Args:
            autopilot: Which autopilot it is.
            binary: ArduPilot's `arducopter`, or PX4's `px4` in the `bin` folder of its build.
            instance: Chooses the ports.
            parameters: Other values than ours.
        """
        binary = binary.resolve()
        if not binary.is_file() or not os.access(binary, os.X_OK):
            raise WordwingError(f"--binary is {binary}; there is no program there")
        self.ports = sitl_ports(autopilot, instance)
        self.folder = Path(tempfile.mkdtemp(prefix="wordwing-bridge-"))
        try:
            program = _ardupilot if autopilot == "ardupilot" else _px4
            command, environment = program(binary, self.folder, instance, parameters or {})
            self._output = (self.folder / "output.txt").open("wb")
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C must not reach it
            )
        except (OSError, WordwingError) as error:
            shutil.rmtree(self.folder, ignore_errors=True)
            if isinstance(error, WordwingError):
                raise
            why = (error.strerror or "unknown").lower()
            raise WordwingError(f"{binary} cannot be started ({why})") from None

    @property
    def ended(self) -> str | None:
        """Its last output if it has ended by itself."""
        return None if self._process.poll() is None else self.output_tail()

    def output_tail(self) -> str:
        """The end of what it has printed."""
        text = (self.folder / "output.txt").read_bytes()[-OUTPUT_TAIL:].decode("utf-8", "replace")
        return " ".join("".join(c if c.isprintable() else " " for c in text).split())

    def close(self) -> None:
        """Kill it and its children and remove its folder; may be called twice."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._output.close()
        shutil.rmtree(self.folder, ignore_errors=True)


Command = tuple[list[str], dict[str, str]]
"""Arguments and environment."""


def _ardupilot(binary: Path, folder: Path, instance: int, parameters: Mapping[str, float]) -> Command:
    defaults = folder / "room.parm"
    chosen = {**ARDUPILOT_PARAMETERS, **parameters}
    defaults.write_text("".join(f"{name} {value:g}\n" for name, value in chosen.items()))
    home = ",".join(map(str, (*ORIGIN, 0.0)))
    options = ["--model", "quad", "--home", home, "--defaults", str(defaults), "--speedup", "1"]
    return [str(binary), *options, "--instance", str(instance)], {}


def _px4(binary: Path, folder: Path, instance: int, parameters: Mapping[str, float]) -> Command:
    etc = binary.parent.parent / "etc"
    if not (etc / "init.d-posix" / "rcS").is_file():
        raise WordwingError(f"--binary is {binary}; PX4's must be in the bin folder of its build, beside {etc}")
    environment = {f"PX4_PARAM_{name}": f"{value:g}" for name, value in {**PX4_PARAMETERS, **parameters}.items()}
    environment["PX4_SIM_MODEL"] = "sihsim_quadx"
    return [str(binary), "-d", "-i", str(instance), "-w", str(folder), str(etc)], environment
