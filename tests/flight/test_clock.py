"""Clocks."""

import time

from wordwing.flight.clock import ManualClock, SystemClock


def test_the_manual_clock_moves_in_sleep_only():
    clock = ManualClock(5.0)
    assert clock.now() == 5.0
    clock.sleep(0.25)
    assert clock.now() == 5.25
    clock.sleep(-1.0)
    clock.sleep(0.0)
    assert clock.now() == 5.25


def test_the_system_clock_is_the_monotonic_one_and_sleep_lets_it_pass():
    clock = SystemClock()
    assert abs(clock.now() - time.monotonic()) < 0.5
    before = clock.now()
    clock.sleep(0.01)
    clock.sleep(-5.0)
    assert clock.now() - before >= 0.01
