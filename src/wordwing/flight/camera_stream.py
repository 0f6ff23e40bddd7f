"""The drone's camera by PyAV: the newest image, when it was taken, and whether it still changes.

An image's time is when it arrived less the latency that `camera.json` states. Where the stream carries times of its
own, an image that came later than the quickest ones of the last seconds is older by so much: images that queue up
somewhere on the way do not pass for fresh.
"""

import errno
import math
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.flight.calibration import Calibration
from wordwing.flight.mavlink.clock import Clock, ClockSync, SystemClock
from wordwing.lens import Rectifier

RETRY = 0.5
"""How long to wait before a lost camera is opened again, seconds."""

OPEN_SECONDS, READ_SECONDS = 5.0, 1.0
"""How long a camera may take to open, and to send its next image, before it counts as lost."""

WINDOW = 10.0
"""Seconds over which the quickest image gives the delay of the stream."""

SAME = 0.1
"""Images that differ by less than this on average, of 255, are the same: a sensor's noise alone is more, but what an
encoder makes of one and the same image is not always the same."""

STREAMS = ("rtsp://", "rtsps://", "rtp://", "udp://", "tcp://", "http://", "https://", "srt://")

LOW_DELAY = {"fflags": "nobuffer", "flags": "low_delay", "probesize": "200000", "analyzeduration": "500000"}
"""FFmpeg's options for streams: no image waits for the next one."""


@dataclass(frozen=True)
class CameraFrame:
    """What the drone saw, as the policy sees it."""

    image: Tensor
    """[72, 128, 3] uint8 RGB: the policy's view."""
    taken: float
    """When the shutter closed, on our clock, seconds."""
    number: int
    """Counts images from 1; with lost and skipped ones left out."""


class VideoSource:
    """Keeps the newest image of a camera; one thread may put images in while another reads."""

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self._rectify = Rectifier(calibration.lens)
        self._lock = threading.Lock()
        self._raw: NDArray[np.uint8] | None = None
        self._taken = self._changed = -math.inf
        self._number = 0
        self._thumb: NDArray[np.int16] | None = None
        self.restart()
        self._seen: CameraFrame | None = None

    def put(self, raw: NDArray[np.uint8], arrived: float, stamp: float | None = None) -> None:
        """Take an image in.

        Args:
            raw: [H, W, 3] RGB, of the size that the calibration is for.
            arrived: When it came, on our clock, seconds.
            stamp: The stream's own time of it, seconds; None if it has none.
        """
        expected = (self.calibration.height, self.calibration.width, 3)
        if raw.shape != expected:
            raise WordwingError(
                f"the camera's images are {raw.shape[1]}×{raw.shape[0]}; camera.json is for {expected[1]}×{expected[0]}"
            )
        taken = arrived - self.calibration.latency - self._queued(arrived, stamp)
        thumb = raw[::4, ::4].astype(np.int16)
        with self._lock:
            if self._thumb is None or float(np.abs(thumb - self._thumb).mean()) > SAME:
                self._changed, self._thumb = taken, thumb
            self._raw, self._taken = raw, taken
            self._number += 1

    failure: str | None = None
    """Why there are no images now, as the end of a sentence."""

    def start(self, timeout: float = 10.0) -> None:
        """Open it and wait for the first image; where there is nothing to open, do nothing."""

    def close(self) -> None:
        """Release it; may be called twice."""

    def restart(self) -> None:
        """The stream begins anew, and with it its times."""
        self._sync, self._last_stamp = ClockSync(WINDOW), -math.inf

    def latest(self) -> CameraFrame | None:
        """The newest image, straightened; None before the first."""
        with self._lock:
            raw, taken, number = self._raw, self._taken, self._number
        if raw is None:
            return None
        if self._seen is None or self._seen.number != number:
            view = self._rectify(torch.from_numpy(np.ascontiguousarray(raw)).float())
            self._seen = CameraFrame(view.round().clamp(0, 255).to(torch.uint8), taken, number)
        return self._seen

    def unchanged(self, now: float) -> float:
        """Seconds since the newest image that differs from the one before was taken; infinite before the first.

        A camera that hangs may send the same image again and again.
        """
        with self._lock:
            return now - self._changed

    def _queued(self, arrived: float, stamp: float | None) -> float:
        """How much longer than the quickest one an image was under way, seconds."""
        if stamp is None:
            return 0.0
        if stamp < self._last_stamp:  # the camera has begun to count anew
            self.restart()
        self._last_stamp = stamp
        self._sync.add(stamp, arrived)
        return arrived - stamp - self._sync.offset


class CameraStream(VideoSource):
    """A camera that is read in a thread of its own: a device, a stream or a video file."""

    def __init__(self, source: str | Path, calibration: Calibration, clock: Clock | None = None) -> None:
        """Nothing is opened before `start`.

        Args:
            source: `/dev/video0`, `rtsp://…`, `udp://…` or a file, which is played at its own pace.
            calibration: Of the camera.
            clock: Whose times images have.
        """
        self.source = str(source)
        self._is_file = not self.source.startswith((*STREAMS, "/dev/"))
        super().__init__(calibration)
        self.ended = False
        """Whether it was a file that has been played."""
        self.connections = 0
        """How many times it has been opened."""
        self._clock = clock or SystemClock()
        self._stopping = threading.Event()
        self._arrived = threading.Event()
        self._thread = threading.Thread(target=self._run, name="camera", daemon=True)

    def start(self, timeout: float = 10.0) -> None:
        """Open it and wait for the first image; a `WordwingError` says why none came."""
        self._thread.start()
        if not self._arrived.wait(timeout) or self.latest() is None:
            self.close()
            raise WordwingError(f"no image came from {self.source} ({self.failure or 'it sends nothing'})")

    def close(self) -> None:
        """Release the camera; may be called twice."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(OPEN_SECONDS + READ_SECONDS)

    def _run(self) -> None:
        import av

        while not self._stopping.is_set():
            try:
                self._read()
                self.failure = "the video is over" if self.ended else "the stream ended"
            except (av.FFmpegError, OSError, ValueError) as error:
                self.failure = _why(error)
            except WordwingError as error:  # images of another size, which waiting does not change
                self.failure = str(error)
                self._arrived.set()
            if self._is_file:  # another try would begin it anew, or fail again
                self._arrived.set()
                return
            self._stopping.wait(RETRY)

    def _read(self) -> None:
        """Take images in until there are no more."""
        import av

        options: dict[str, Any] = {"timeout": (OPEN_SECONDS, READ_SECONDS)}
        if self.source.startswith(STREAMS):
            over_tcp = {"rtsp_transport": "tcp"} if self.source.startswith("rtsp") else {}
            options["options"] = {**LOW_DELAY, **over_tcp}
        elif not self._is_file:
            size = f"{self.calibration.width}x{self.calibration.height}"
            options |= {"format": "v4l2", "options": {"video_size": size}}
        with av.open(self.source, **options) as container:
            if not container.streams.video:
                raise ValueError("there is no video in it")
            stream = container.streams.video[0]
            stream.thread_type = "SLICE"  # threads that share images out make each one wait for others
            self.connections += 1
            self.restart()
            begun: float | None = None
            for frame in container.decode(stream):
                if self._stopping.is_set():
                    return
                stamp = None if frame.time is None else float(frame.time)
                if self._is_file:
                    begun = self._clock.now() - (stamp or 0.0) if begun is None else begun
                    self._clock.sleep(begun + (stamp or 0.0) - self._clock.now())
                self.put(frame.to_ndarray(format="rgb24"), self._clock.now(), stamp)
                self.failure = None
                self._arrived.set()
        self.ended = self._is_file


def _why(error: Exception) -> str:
    """Why a camera cannot be read, as the end of a sentence: the system's text, or ours instead of FFmpeg's."""
    import av

    ours = {
        av.ExitError: "it sends nothing",  # our own time-out
        av.EOFError: "the stream ended",
        av.InvalidDataError: "it is no video that can be read",
        av.HTTPNotFoundError: "the server knows no such stream",
        av.HTTPUnauthorizedError: "the server wants NAME:PASSWORD@ before the host",
        av.HTTPForbiddenError: "the server does not let us see it",
        av.error.LookupError: "it is of a kind that is not known",
    }
    for kind, reason in ours.items():
        if isinstance(error, kind):
            return reason
    code = getattr(error, "errno", None) or 0
    if code == errno.EIO:  # what FFmpeg makes of a host that it does not find
        return "it cannot be reached"
    if code in errno.errorcode:
        return os.strerror(code).lower()
    return "it cannot be read" if isinstance(error, av.FFmpegError) else str(error) or "unknown"
