# SPDX-License-Identifier: MIT OR Apache-2.0
"""Ctrl-C ends what is at work at once, and other threads run meanwhile."""

import os
import signal
import threading
import time

import pytest

import unspin_lab
from conftest import LONG, SCENARIO

CALLS = {
    "run": lambda: unspin_lab.run(LONG),
    "compare": lambda: unspin_lab.compare(LONG, ["strict"], seeds=3, workers=2),
    "sweep": lambda: unspin_lab.sweep(LONG, {"vm.vcpus": [2, 3, 4]}, workers=2),
    "a grid that is still checked": lambda: unspin_lab.sweep(LONG, {"seed": "1..99999"}, workers=2),
}
#: From the signal to the exception, seconds; on an idle machine it is a tenth of this.
PATIENCE = 2.0


@pytest.fixture
def ctrl_c():
    """Ctrl-C as at a terminal: what a shell starts in the background ignores it, and so would Python."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c(name):
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        CALLS[name]()
    assert time.monotonic() - sent[0] < PATIENCE


def test_a_handler_of_ones_own_decides():
    class Enough(Exception):
        pass

    def handler(*_):
        raise Enough

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Enough):
            unspin_lab.run(LONG)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_other_threads_run_meanwhile():
    counted = 0
    done = threading.Event()

    def count():
        nonlocal counted
        while not done.wait(0.002):
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted
        unspin_lab.run(SCENARIO, duration="4s")
        assert counted - before > 5
    finally:
        done.set()
        thread.join()


def test_several_threads_run_at_once():
    results = {}

    def simulate(seed):
        results[seed] = unspin_lab.run(SCENARIO, seed=seed).vcpus.to_pylist()

    threads = [threading.Thread(target=simulate, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {seed: unspin_lab.run(SCENARIO, seed=seed).vcpus.to_pylist() for seed in range(4)}


def test_progress():
    seen = []
    unspin_lab.sweep(SCENARIO, {"vm.vcpus": [1, 2]}, seeds=2, workers=1, progress=lambda done, all: seen.append((done, all)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_an_exception_of_progress_ends_it():
    def progress(done, _):
        raise ZeroDivisionError(done)

    with pytest.raises(ZeroDivisionError):
        unspin_lab.sweep(SCENARIO, {"seed": "1..1000"}, duration="1s", progress=progress)
