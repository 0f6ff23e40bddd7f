"""Clocks."""

from pathlib import Path

import pytest

from wordwing.flight.mavlink.clock import ManualClock, SystemClock

UPTIME = Path("/proc/uptime")


def test_the_manual_clock_moves_in_sleep_only():
    clock = ManualClock(5.0)
    assert clock.now() == 5.0
    clock.sleep(0.25)
    assert clock.now() == 5.25
    clock.sleep(-1.0)
    clock.sleep(0.0)
    assert clock.now() == 5.25


@pytest.mark.skipif(not UPTIME.exists(), reason="only Linux tells how long ago it was started")
def test_the_system_clock_counts_from_the_start_of_the_computer_also_while_it_sleeps():
    uptime, ours = float(UPTIME.read_text("ascii").split()[0]), SystemClock().now()
    assert ours == pytest.approx(uptime, abs=0.5)
    assert SystemClock(2.0).now() == pytest.approx(2 * uptime, abs=1.0)


def test_the_system_clock_never_goes_back_and_sleep_lets_it_pass():
    clock = SystemClock()
    before = clock.now()
    clock.sleep(0.01)
    clock.sleep(-5.0)
    assert clock.now() - before >= 0.01
