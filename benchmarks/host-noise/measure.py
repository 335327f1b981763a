#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""How often and how long a host runs something other than its users' programs, per CPU: the figures of crates/lab/src/host_noise.rs.

Reads the kernel's own events (tracefs: irq_handler, softirq, sched_switch), as root, while loops of class SCHED_IDLE keep every
CPU busy, so that CPUs tick as those that run vCPUs do. Programs of users are left out: what they cause in the kernel is not.
Prints one JSON object, {"rows": [...]}.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import time

EVENTS = [
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    "sched/sched_switch",
]
LINE = re.compile(r"^\s*.+-\d+\s+\[(\d+)\]\s+\S+\s+(\d+)\.(\d+): (\w+): (.*)$")
SWITCH = re.compile(r"prev_comm=.+? prev_pid=(\d+) .*==> next_comm=(.+?) next_pid=(\d+)")
# Threads of one CPU: kworker/1:2, ksoftirqd/1, migration/1.
BOUND = re.compile(r"^(kworker|ksoftirqd|migration|rcuc|cpuhp|irq_work)/\d")
# Softirqs that are nearer belong to the interrupt before them.
SAME_US = 2
# Runs of users' programs a second and CPU: below, the host is idle; and runs of rcu_preempt: above, it is busy.
IDLE_RUNS, BUSY_RUNS = 50, 10


def record(tracefs, seconds):
    """The lines of so many seconds."""
    folder = pathlib.Path(tracefs) / "instances" / f"host-noise-{os.getpid()}"
    folder.mkdir()
    loops = [
        subprocess.Popen(["chrt", "-i", "0", "taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
        for cpu in sorted(os.sched_getaffinity(0))
    ]
    try:
        (folder / "trace_clock").write_text("mono")
        (folder / "buffer_size_kb").write_text("65536")
        for event in EVENTS:
            (folder / "events" / event / "enable").write_text("1")
        time.sleep(1)
        (folder / "trace").write_text("")
        time.sleep(seconds)
        (folder / "tracing_on").write_text("0")
        lines = (folder / "trace").read_text().splitlines()
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
        for event in EVENTS:
            (folder / "events" / event / "enable").write_text("0")
        folder.rmdir()
    return lines


def kernel_threads():
    """Thread ids of the children of kthreadd."""
    found = set()
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if stat.read_text().rpartition(")")[2].split()[1] == "2":
                found.add(stat.parent.name)
        except OSError:
            pass
    return found


class Sample:
    """Lengths by kind, us, and the CPU time they were seen in, s."""

    def __init__(self, lines, kernel):
        self.lengths = collections.defaultdict(list)
        entered, running, interrupted = {}, {}, {}
        first = last = None
        cpus = set()
        for line in lines:
            match = LINE.match(line)
            if not match:
                continue
            cpu, seconds, micros, event, rest = match.groups()
            last = int(seconds) * 1_000_000 + int(micros)
            first = last if first is None else first
            cpus.add(cpu)
            name, _, end = event.rpartition("_")
            if name not in ("irq_handler", "softirq", "sched"):
                continue
            if end == "entry":
                entered[cpu, name] = (last, rest)
            elif end == "exit":
                begun, what = entered.pop((cpu, name), (None, ""))
                # SCHED follows the tick, which is a cost of its own.
                if begun is None or "action=SCHED" in what:
                    continue
                since, until = interrupted.get(cpu, (begun, begun - SAME_US - 1))
                if begun - until <= SAME_US:
                    interrupted[cpu] = (since, last)
                    self.lengths["interrupts"][-1] = last - since
                else:
                    interrupted[cpu] = (begun, last)
                    self.lengths["interrupts"].append(last - begun)
            elif event == "sched_switch":
                previous, following, thread = SWITCH.search(rest).groups()
                known = running.get(cpu)
                if known and known[1] == previous != "0":
                    self.lengths[self.kind(known[0], previous, kernel)].append(last - known[2])
                running[cpu] = (following, thread, last)
        self.cpu_seconds = (last - first) / 1e6 * len(cpus)

    @staticmethod
    def kind(name, thread, kernel):
        if BOUND.match(name):
            return "bound_threads"
        return "unbound_threads" if thread in kernel or name.startswith("kworker/u") else "users"

    def host(self):
        """Whether the host was idle or busy meanwhile; None: neither."""
        rate = lambda kind: len(self.lengths[kind]) / self.cpu_seconds
        if rate("users") < IDLE_RUNS:
            return "idle"
        return "busy" if rate("unbound_threads") > BUSY_RUNS else None


def rows(samples):
    for host in ("idle", "busy"):
        of = [sample for sample in samples if sample.host() == host]
        seconds = sum(sample.cpu_seconds for sample in of)
        for kind in ("interrupts", "bound_threads", "unbound_threads"):
            lengths = sorted(length for sample in of for length in sample.lengths[kind])
            if not lengths:
                continue
            part = lambda percent: lengths[len(lengths) * percent // 100] * 1_000
            yield {
                "table": "noise",
                "host": host,
                "kind": kind,
                "cpu_seconds": round(seconds, 1),
                "events": len(lengths),
                "every_ns": round(seconds * 1e9 / len(lengths)),
                "mean_ns": round(sum(lengths) * 1_000 / len(lengths)),
                "median_ns": part(50),
                "percentile_90_ns": part(90),
                "percentile_99_ns": part(99),
                "most_ns": lengths[-1] * 1_000,
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10, help="how many samples")
    parser.add_argument("--seconds", type=float, default=3, help="how long each is")
    parser.add_argument("--pause", type=float, default=0, help="seconds between two")
    parser.add_argument("--tracefs", default="/sys/kernel/tracing", help="where tracefs is mounted")
    given = parser.parse_args()
    if not (pathlib.Path(given.tracefs) / "instances").is_dir():
        sys.exit(f"{given.tracefs}: no tracefs; as root: mount -t tracefs none {given.tracefs}")
    samples = []
    for number in range(given.samples):
        if number:
            time.sleep(given.pause)
        lines = record(given.tracefs, given.seconds)
        samples.append(Sample(lines, kernel_threads()))
        print(f"sample {number + 1} of {given.samples}: {samples[-1].host()}", file=sys.stderr)
    json.dump({"rows": list(rows(samples))}, sys.stdout)
    print()


if __name__ == "__main__":
    main()
