# SPDX-License-Identifier: MIT OR Apache-2.0
"""The model of crates/lab/src/engine/timers.rs in SimPy. Usage: timers_simpy.py TIMERS HORIZON_NS SEED

Prints events, their checksum and seconds. All delays are drawn before the clock starts: Python's integers are slow, and
what is measured is SimPy."""

import sys
import time

import simpy

MASK = (1 << 64) - 1
DELAY_BITS = 20


def draw(state):
    """splitmix64: the next state, and 64 random bits."""
    state = (state + 0x9E3779B97F4A7C15) & MASK
    mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return state, mixed ^ (mixed >> 31)


def delays(seed, number, horizon_ns):
    """What one timer draws until it is behind the horizon."""
    state, _ = draw(seed ^ (number << 32))
    state = (draw(state)[1] + number) & MASK
    drawn, now_ns = [], 0
    while now_ns <= horizon_ns:
        state, bits = draw(state)
        drawn.append((bits >> (64 - DELAY_BITS)) + 1)
        now_ns += drawn[-1]
    return drawn


def timer(environment, drawn):
    events = total = 0
    for delay in drawn:
        yield environment.timeout(delay)
        events += 1
        total += environment.now


def main():
    timers, horizon_ns, seed = (int(word) for word in sys.argv[1:])
    drawn = [delays(seed, number, horizon_ns) for number in range(timers)]
    environment = simpy.Environment()
    running = [timer(environment, one) for one in drawn]
    for one in running:
        environment.process(one)
    begin = time.perf_counter()
    # run() ends before what happens at that time.
    environment.run(until=horizon_ns + 1)
    seconds = time.perf_counter() - begin
    ends = [one.gi_frame.f_locals for one in running]
    checksum = sum(end["total"] for end in ends) & MASK
    print(sum(end["events"] for end in ends), checksum, seconds)


main()
