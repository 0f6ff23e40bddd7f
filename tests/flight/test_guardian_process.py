"""The guardian process: the order in which it reads and sends, and that no flood keeps it from its ticks."""

import json
import socket
import threading
import time

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.bench.flight import free_port
from wordwing.flight.arena import Arena
from wordwing.flight.guardian import process as module
from wordwing.flight.guardian.process import GuardianConfig, GuardianProcess
from wordwing.flight.guardian.protocol import KeepAlive, to_json

ALIVE = json.dumps(to_json(KeepAlive())).encode()


class Line:
    """A link on which batches of packets are waiting."""

    def __init__(self, batches: list[list[bytes]]) -> None:
        self.lost = None
        self.batches = batches
        self.waiting_when_sent: list[int] = []

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        if self.batches:
            time.sleep(0.06)  # longer than a tick: we come late
            return self.batches.pop(0)
        threading.Event().wait(timeout)
        return []

    def send(self, data: bytes) -> None:
        self.waiting_when_sent.append(len(self.batches))

    def close(self) -> None:
        self.lost = "it was closed"


class FloodingPilot:
    """A pilot that sends some hundred orders as fast as they are read, and then disconnects."""

    def __init__(self, words: int) -> None:
        self.left = words

    def recv(self, size: int, flags: int = 0) -> bytes:
        self.left -= 1
        return ALIVE if self.left > 0 else b""

    def send(self, data: bytes, flags: int = 0) -> int:
        return len(data)


@pytest.fixture
def line(monkeypatch) -> Line:
    made = Line([])
    monkeypatch.setattr(module, "open_link", lambda url: made)
    monkeypatch.setattr(module, "FAREWELL", 0.1)
    return made


def setup() -> GuardianConfig:
    return GuardianConfig("udp:127.0.0.1:1", Arena(), f"udp:127.0.0.1:{free_port(socket.SOCK_DGRAM)}")


def heartbeats(count: int) -> list[bytes]:
    mav = mavlink.MAVLink(None, 1, 1)
    packets = []
    for _ in range(count):
        packets.append(bytes(mavlink.MAVLink_heartbeat_message(2, 3, 0, 4, 3, 3).pack(mav)))
        mav.seq = (mav.seq + 1) % 256
    return packets


def test_nothing_is_sent_while_messages_of_the_autopilot_wait_unread(line):
    line.batches = [heartbeats(3) for _ in range(5)]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.send(ALIVE)
    process = GuardianProcess(theirs, setup())
    threading.Timer(0.3, ours.close).start()
    process.run()
    assert line.waiting_when_sent
    assert set(line.waiting_when_sent) == {0}


def test_messages_that_never_end_do_not_stop_the_ticks(line):
    line.receive = lambda timeout=0.0: heartbeats(1)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.send(ALIVE)
    process = GuardianProcess(theirs, setup())
    threading.Timer(0.3, ours.close).start()
    process.run()
    assert line.waiting_when_sent


def test_a_pilot_that_floods_does_not_stop_the_ticks(line):
    pilot = FloodingPilot(500)
    heard: list[int] = []
    line.send = lambda data: heard.append(500 - pilot.left)
    GuardianProcess(pilot, setup()).run()
    assert heard
    assert heard[0] < 200
