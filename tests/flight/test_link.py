"""Links against plain sockets and a pseudo-terminal; log files against pymavlink's own reader."""

import os
import pty
import socket
import struct
import sys
import threading

import pytest

from wordwing.errors import WordwingError
from wordwing.flight.guardian.event_log import TlogWriter
from wordwing.flight.mavlink.link import open_link

mavlink = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega")


def udp_socket() -> tuple[socket.socket, int]:
    """A plain socket on a free port, and the port."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    made.settimeout(2.0)
    return made, made.getsockname()[1]


def free_port() -> int:
    with udp_socket()[0] as probe:
        return probe.getsockname()[1]


def test_a_udp_link_speaks_to_its_address_and_hears_the_answer():
    vehicle, port = udp_socket()
    link = open_link(f"udp:127.0.0.1:{port}")
    link.send(b"hello")
    data, us = vehicle.recvfrom(100)
    assert data == b"hello"
    vehicle.sendto(b"one", us)
    vehicle.sendto(b"two", us)
    assert link.receive(2.0) + link.receive(0.1) == [b"one", b"two"]
    assert link.lost is None
    link.close()
    vehicle.close()


def test_a_udp_link_does_not_hear_strangers():
    vehicle, port = udp_socket()
    stranger, _ = udp_socket()
    link = open_link(f"udpout:127.0.0.1:{port}")
    link.send(b"hello")
    _, us = vehicle.recvfrom(100)
    stranger.sendto(b"land", us)
    vehicle.sendto(b"ours", us)
    assert link.receive(2.0) + link.receive(0.1) == [b"ours"]
    for made in (link, vehicle, stranger):
        made.close()


def test_a_udp_link_speaks_from_the_same_port_each_time():
    vehicle, port = udp_socket()
    ports = []
    for _run in range(2):
        link = open_link(f"udp:127.0.0.1:{port}")
        link.send(b"hello")
        ports.append(vehicle.recvfrom(100)[1][1])
        link.close()
    assert ports[0] == ports[1] == 20_000 + port % 10_000
    own = free_port()
    link = open_link(f"udp:127.0.0.1:{port}:{own}")
    link.send(b"hello")
    assert vehicle.recvfrom(100)[1] == ("127.0.0.1", own)
    link.close()
    vehicle.close()


def test_a_udp_link_speaks_over_ipv6():
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as vehicle:
        vehicle.bind(("::1", 0))
        vehicle.settimeout(2.0)
        link = open_link(f"udp:[::1]:{vehicle.getsockname()[1]}:{free_port()}")
        link.send(b"hello")
        assert vehicle.recv(100) == b"hello"
        link.close()


def test_a_local_port_that_an_earlier_run_lets_go_of_is_waited_for():
    held, local = udp_socket()
    threading.Timer(0.3, held.close).start()
    open_link(f"udp:127.0.0.1:14550:{local}").close()


def test_a_local_port_that_is_taken_is_named_with_a_way_out(monkeypatch):
    monkeypatch.setattr("wordwing.flight.mavlink.link.BIND_SECONDS", 0.2)
    taken, local = udp_socket()
    with pytest.raises(WordwingError) as error:
        open_link(f"udp:127.0.0.1:14550:{local}")
    assert f"UDP port {local} of this machine is in use" in str(error.value)
    assert "another wordwing may still speak to this drone" in str(error.value)
    assert "udp:HOST:PORT:LOCALPORT" in str(error.value)
    taken.close()


def test_nobody_at_the_other_end_is_no_error_and_he_may_come_later():
    port = free_port()
    link = open_link(f"udp:127.0.0.1:{port}")
    for _ in range(3):
        link.send(b"anybody?")
        assert link.receive(0.02) == []
    vehicle = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    vehicle.bind(("127.0.0.1", port))
    vehicle.settimeout(2.0)
    link.send(b"there?")
    link.send(b"there?")
    assert vehicle.recv(100) == b"there?"
    link.close()
    vehicle.close()


def test_a_listening_link_answers_the_first_that_speaks_and_nobody_else():
    port = free_port()
    link = open_link(f"udpin:127.0.0.1:{port}")
    link.send(b"into the void")
    first, _ = udp_socket()
    second, _ = udp_socket()
    first.sendto(b"first", ("127.0.0.1", port))
    assert link.receive(2.0) == [b"first"]
    second.sendto(b"second", ("127.0.0.1", port))
    first.sendto(b"again", ("127.0.0.1", port))
    assert link.receive(2.0) + link.receive(0.1) == [b"again"]
    link.send(b"answer")
    assert first.recv(100) == b"answer"
    second.settimeout(0.05)
    with pytest.raises(TimeoutError):
        second.recv(100)
    for made in (link, first, second):
        made.close()


def test_a_flood_is_taken_in_bites(monkeypatch):
    monkeypatch.setattr("wordwing.flight.mavlink.link.MOST", 20)
    port = free_port()
    link = open_link(f"udpin:127.0.0.1:{port}")
    flood, _ = udp_socket()
    for number in range(50):
        flood.sendto(bytes([number]), ("127.0.0.1", port))
    bites = [link.receive(1.0) for _ in range(3)]
    assert [len(bite) for bite in bites] == [20, 20, 10]
    assert b"".join(data for bite in bites for data in bite) == bytes(range(50))
    link.close()
    flood.close()


def test_where_nothing_comes_nothing_is_received_and_a_closed_link_stays_silent():
    link = open_link(f"udpin:127.0.0.1:{free_port()}")
    assert [link.receive(), link.receive(-1.0), link.receive(0.02)] == [[], [], []]
    link.close()
    link.close()
    assert link.receive(1.0) == []


@pytest.fixture
def tcp():
    """A link and the other end of it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = open_link(f"tcp:127.0.0.1:{server.getsockname()[1]}")
        other, _ = server.accept()
        other.settimeout(2.0)
        yield link, other
        link.close()
        other.close()


def test_a_tcp_link_carries_bytes_both_ways(tcp):
    link, other = tcp
    link.send(b"abc")
    assert other.recv(100) == b"abc"
    other.sendall(b"def")
    assert b"".join(link.receive(2.0)) == b"def"
    assert link.receive() == []
    assert link.lost is None


def test_a_tcp_link_whose_other_end_does_not_read_drops_whole_packets_and_does_not_wait(tcp):
    link, other = tcp
    packets = [struct.pack(">I", number) + bytes([number % 251]) * 20_000 for number in range(2000)]
    for packet in packets:
        link.send(packet)
    got = b""
    other.settimeout(0.3)
    while True:
        try:
            got += other.recv(1 << 20)
        except TimeoutError:
            break
        link.send(b"")  # lets the rest of a packet out
    whole = [got[at : at + 20_004] for at in range(0, len(got) - 20_003, 20_004)]
    assert 0 < len(whole) < 2000
    assert whole == packets[: len(whole)]


def test_what_could_not_be_sent_at_once_is_never_sent_later_but_for_the_rest_of_a_packet(tcp, monkeypatch):
    link, _ = tcp
    out, room = bytearray(), 0

    def write(data: bytes) -> int:
        nonlocal room
        taken = data[:room]
        out.extend(taken)
        room -= len(taken)
        return len(taken)

    monkeypatch.setattr(link, "_write", write)
    link.send(b"old setpoint")
    room = 5
    link.send(b"half of it")
    link.send(b"dropped")
    room = 100
    link.send(b"|new setpoint")
    assert bytes(out) == b"half of it|new setpoint"


def test_a_tcp_link_that_is_cut_says_so_and_goes_quiet(tcp):
    link, other = tcp
    other.close()
    assert link.receive(2.0) == []
    assert link.lost == "the other side closed it"
    link.send(b"abc")
    assert link.receive(1.0) == []


def test_a_serial_link_carries_bytes_both_ways():
    pytest.importorskip("serial")
    ours, theirs = pty.openpty()
    link = open_link(f"serial:{os.ttyname(theirs)}:57600")
    link.send(b"\xfd\x00\x0a\x0d\x11\x13\xff")  # a terminal would swallow or change some of these
    assert os.read(ours, 100) == b"\xfd\x00\x0a\x0d\x11\x13\xff"
    os.write(ours, b"\x11\x13\x0d\x0a\x00\xff")
    assert b"".join(link.receive(2.0)) == b"\x11\x13\x0d\x0a\x00\xff"
    for _ in range(3000):  # nobody reads any more: it fills up, and nobody waits
        link.send(b"x" * 100)
    assert link.lost is None
    os.close(ours)
    os.close(theirs)
    link.receive(1.0)
    assert link.lost is not None
    link.close()


def test_without_pyserial_a_serial_link_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "serial", None)
    with pytest.raises(WordwingError, match=r"pip install 'wordwing\[flight\]'"):
        open_link("serial:/dev/ttyACM0:921600")


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("", "is no link; it must begin with udp:"),
        ("14550", "is no link; it must begin with udp:"),
        ("upd:127.0.0.1:14550", 'did you mean "udp"?'),
        ("http://x:1", "must begin with udp:"),
        ("udp:", "must come HOST:PORT"),
        ("udp:14550", "must come HOST:PORT"),
        ("udp:127.0.0.1", "must come HOST:PORT"),
        ("udp:127.0.0.1:", "must come HOST:PORT"),
        ("udp::14550", "must come HOST:PORT"),
        ("udp:::1:14550", "must come HOST:PORT"),
        ("udp://127.0.0.1:port", "must come HOST:PORT"),
        ("tcp:127.0.0.1:１２", "must come HOST:PORT"),
        ("udp:127.0.0.1:0", "ports go from 1 to 65535"),
        ("udp:127.0.0.1:14550:0", "port 0; ports go from 1 to 65535"),
        ("udp:127.0.0.1:14550:70000", "port 70000"),
        ("udp:127.0.0.1:14550:", "must come HOST:PORT or HOST:PORT:LOCALPORT"),
        ("tcp:127.0.0.1:14550:14540", "must come HOST:PORT, as in"),
        ("udpin:127.0.0.1:14550:14540", "must come HOST:PORT, as in"),
        ("udp:127.0.0.1:70000", "port 70000"),
        ("tcp:127.0.0.1:1", "cannot be opened (connection refused)"),
        ("udp:no-such-host.invalid:14550", "no machine is called no-such-host.invalid"),
        ("serial:", "serial:DEVICE:BAUD"),
        ("serial:/dev/ttyACM0:fast", "serial:DEVICE:BAUD"),
        ("serial:/dev/ttyACM0:1", "serial:DEVICE:BAUD"),
        ("serial:/dev/no-such-port:57600", "cannot be opened"),
    ],
)
def test_a_wrong_link_gets_one_sentence(url, sentence):
    with pytest.raises(WordwingError) as error:
        open_link(url)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_two_cannot_listen_at_one_place():
    port = free_port()
    link = open_link(f"udpin:127.0.0.1:{port}")
    with pytest.raises(WordwingError, match="address already in use"):
        open_link(f"udpin:127.0.0.1:{port}")
    link.close()


def packets() -> list[bytes]:
    """A heartbeat and a position, by pymavlink's encoder."""
    factory = mavlink.MAVLink(None, srcSystem=1, srcComponent=1)
    beat = factory.heartbeat_encode(2, 3, 81, 4, 4)
    place = factory.local_position_ned_encode(1234, 1.0, 2.0, -0.7, 0.1, 0.2, 0.3)
    return [beat.pack(factory), place.pack(factory)]


def test_a_tlog_is_a_big_endian_time_in_microseconds_before_each_packet(tmp_path):
    log = TlogWriter(tmp_path / "a" / "flight.tlog")
    log.write(b"\xfd\x01", 1.5)
    log.write(b"\xfe", 1_700_000_000.000001)
    assert (tmp_path / "a" / "flight.tlog").read_bytes() == (
        b"\x00\x00\x00\x00\x00\x16\xe3\x60\xfd\x01" + (1_700_000_000_000_001).to_bytes(8, "big") + b"\xfe"
    )
    log.close()
    log.close()
    log.write(b"late", 2.0)


def test_pymavlinks_own_reader_reads_a_tlog(tmp_path):
    from pymavlink import mavutil

    log = TlogWriter(tmp_path / "flight.tlog")
    start = 1_700_000_000.25
    for number, packet in enumerate(packets()):
        log.write(packet, start + 0.1 * number)
    log.close()
    reader = mavutil.mavlogfile(str(tmp_path / "flight.tlog"))
    beat, place = reader.recv_msg(), reader.recv_msg()
    reader.close()
    assert (beat.get_type(), beat.custom_mode, beat.base_mode) == ("HEARTBEAT", 4, 81)
    assert (place.get_type(), place.time_boot_ms, place.z) == ("LOCAL_POSITION_NED", 1234, pytest.approx(-0.7))
    assert beat._timestamp == pytest.approx(start, abs=1e-5)
    assert place._timestamp == pytest.approx(start + 0.1, abs=1e-5)


def test_a_full_disk_ends_the_log_and_not_the_flight():
    log = TlogWriter("/dev/full")
    log.write(b"abc", 1.0)
    assert log.failed == "no space left on device"
    log.write(b"abc", 1.0)
    log.close()


def test_a_log_that_cannot_be_written_is_refused_before_the_flight(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WordwingError, match="cannot be written"):
        TlogWriter(tmp_path / "file" / "flight.tlog")
