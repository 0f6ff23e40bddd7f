"""Pictures of a served camera into its stream, at the camera's rate and with its delay."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

from wordwing.flight.served.camera import Carrier, ServedCamera
from wordwing.flight.served.video import RATE, VideoServer


def film(
    camera: ServedCamera,
    carrier: Carrier,
    video: VideoServer,
    latency: float,
    stopping: threading.Event,
    lock: AbstractContextManager[object],
    speed: float = 1.0,
) -> None:
    """Take pictures until told to stop; a slow machine drops some.

    Args:
        camera: Takes them.
        carrier: What carries it, and whose time counts.
        video: Where they go.
        latency: How old a picture is when it is sent, seconds.
        stopping: Ends it.
        lock: Held while the carrier must not move.
        speed: How many of the carrier's seconds pass in one.
    """
    last_time, next_time = -1.0, 0.0
    while not stopping.wait(0.005 / speed):
        video.welcome()
        if carrier.time < next_time or not video.watched:
            continue
        next_time = max(next_time + 1 / RATE, carrier.time)
        with lock:
            exposure = camera.expose(age=0.0)
        picture, closed = camera.develop(exposure)
        # Drawing takes a part of the time that a real camera and its link take.
        while carrier.time < exposure.time + latency and not stopping.wait(0.002 / speed):
            pass
        if closed > last_time:
            last_time = closed
            video.show(picture, closed)
