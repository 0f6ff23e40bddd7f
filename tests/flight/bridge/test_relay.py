"""The pilot's link through the bridge, over real sockets."""

import socket
import threading

import pytest

pytest.importorskip("pymavlink")

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.bridge.bridge import LinkRelay
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.served.faults import FaultSchedule, PacketLoss


class Peer:
    """Somebody with a UDP socket."""

    def __init__(self, system: int) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(20.0)
        self.port: int = self.socket.getsockname()[1]
        self.codec = mavlink.MAVLink(None, system, 1)

    def beat(self, port: int, mode: int) -> bytes:
        packet = bytes(mavlink.MAVLink_heartbeat_message(2, 3, 0, mode, 4, 3).pack(self.codec))
        self.codec.seq = (self.codec.seq + 1) % 256
        self.socket.sendto(packet, ("127.0.0.1", port))
        return packet

    def hear(self) -> tuple[bytes, int]:
        data, sender = self.socket.recvfrom(2048)
        return data, sender[1]


def test_packets_go_both_ways_except_while_they_are_lost() -> None:
    pilot, autopilot, probe = Peer(245), Peer(1), Peer(9)
    probe.socket.close()
    port, clock = probe.port, ManualClock()
    faults = FaultSchedule([PacketLoss(10.0, 10.0, share=1.0, direction="in")], 0, 0.01)
    relay = LinkRelay(f"udpin:127.0.0.1:{port}", f"udp:127.0.0.1:{autopilot.port}", faults, clock)
    stopping = threading.Event()
    thread = threading.Thread(target=relay.run, args=[stopping])
    thread.start()
    try:
        sent = pilot.beat(port, 1)
        heard, relays = autopilot.hear()
        assert heard == sent
        clock.sleep(15.0)
        pilot.beat(port, 2)
        for mode in (3, 4):  # the second one comes after the relay has looked for the pilot's packets again
            answer = autopilot.beat(relays, mode)
            assert pilot.hear() == (answer, port)
        clock.sleep(15.0)
        sent = pilot.beat(port, 5)
        assert autopilot.hear() == (sent, relays)
    finally:
        stopping.set()
        thread.join(10.0)
        relay.close()
        pilot.socket.close()
        autopilot.socket.close()
