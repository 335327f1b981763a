#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Real programs with libc's locks and with libunspin-preload.so, in ABBA rounds; prints one JSON object with a row for each.

Usage: programs.py [--rounds N] [--library FILE] [--folder FOLDER] [NAME...]

Programs are Debian's packages, fetched by `apt-get download` and unpacked in FOLDER (target/preload-programs), not installed.
A row's ratio is the geometric mean over rounds of (preload / libc), throughput each; its interval is that of Student's t. The
machine's other work is noise: each round takes libc, preload, preload, libc, a second or two each.
"""
import argparse
import json
import math
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
PACKAGES = (
    "libaio1 libbz2-1.0 libck0 libevent-2.1-7 libgflags2.2 libhashkit2 libluajit-5.1-2 libmariadb3 libmemcached-tools "
    "libmemcached11 libpq5 librocksdb7.8 libsnappy1v5 memcached pbzip2 pigz rocksdb-tools sysbench"
).split()
# Two-sided 95 % of Student's t, by degrees of freedom.
STUDENT = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
SCRATCH = pathlib.Path("/dev/shm/unspin-preload-programs")


def fetch(folder):
    """Downloads and unpacks what is not there."""
    done = folder / "done"
    if done.exists():
        return
    (folder / "packages").mkdir(parents=True, exist_ok=True)
    subprocess.run(["apt-get", "download", "-q", *PACKAGES], cwd=folder / "packages", check=True, stdout=sys.stderr)
    for package in (folder / "packages").glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder], check=True)
    done.touch()


class Programs:
    """The programs, each a function that runs once and returns its throughput."""

    def __init__(self, folder, library):
        self.folder, self.library = folder, library
        libraries = [str(folder / place / "x86_64-linux-gnu") for place in ("usr/lib", "lib")]
        self.environment = dict(os.environ, LD_LIBRARY_PATH=":".join(libraries))

    def environment_of(self, preload):
        return dict(self.environment, LD_PRELOAD=str(self.library)) if preload else self.environment

    def run(self, preload, program, *arguments):
        command = [self.folder / "usr/bin" / program, *map(str, arguments)]
        begun = time.monotonic()
        ended = subprocess.run(
            command, env=self.environment_of(preload), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )
        seconds = time.monotonic() - begun
        if ended.returncode != 0:
            sys.exit(f"{command} {'with' if preload else 'without'} the library: {ended.returncode}\n{ended.stdout[-800:]}")
        return ended.stdout.decode(errors="replace"), seconds

    def rocksdb(self, load, threads):
        def once(preload):
            shutil.rmtree(SCRATCH / "db", ignore_errors=True)
            text, _ = self.run(
                preload, "db_bench", f"--db={SCRATCH / 'db'}", f"--benchmarks={load}", f"--threads={threads}",
                "--num=40000", "--value_size=100", "--duration=1",
            )
            return float(re.findall(r"(\d+) ops/sec", text)[-1])

        return once

    def memcached(self, threads):
        def once(preload):
            port = 21300 + threads
            server = subprocess.Popen(
                [self.folder / "usr/bin/memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-t", str(threads)],
                env=self.environment_of(preload), stderr=subprocess.DEVNULL,
            )
            try:
                time.sleep(0.3)
                # The load generator is libc's in both cases.
                text, _ = self.run(
                    False, "memcaslap", "-s", f"127.0.0.1:{port}", "-T", 2, "-c", max(16, 4 * threads), "-t", "2s", "-X", 64
                )
                return float(re.findall(r"TPS:\s*(\d+)", text)[-1])
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait()

        return once

    def sysbench_threads(self, locks, threads):
        def once(preload):
            text, _ = self.run(
                preload, "sysbench", "threads", f"--threads={threads}", f"--thread-locks={locks}", "--thread-yields=10",
                "--time=1", "run",
            )
            return float(re.search(r"events:\s+(\d+)", text)[1])

        return once

    def sysbench_mutex(self, threads):
        def once(preload):
            text, _ = self.run(
                preload, "sysbench", "mutex", f"--threads={threads}", "--mutex-num=1", f"--mutex-locks={1600000 // threads}",
                "--mutex-loops=100", "run",
            )
            return 1 / float(re.search(r"total time:\s+([\d.]+)s", text)[1])

        return once

    def compressor(self, program, block, threads):
        def once(preload):
            return 1 / self.run(preload, program, "-k", "-f", block, f"-p{threads}", text_file())[1]

        return once

    def all(self):
        """By name."""
        cases = {}
        for threads in (2, 16):
            for load in ("fillrandom", "readrandom", "readrandomwriterandom"):
                loads = load if load == "fillrandom" else f"fillrandom,{load}"
                cases[f"rocksdb {load}", threads] = self.rocksdb(loads, threads)
            cases["memcached", threads] = self.memcached(threads)
            cases["sysbench threads, 1 lock", threads] = self.sysbench_threads(1, threads)
            cases["sysbench threads, 8 locks", threads] = self.sysbench_threads(8, threads)
            cases["sysbench mutex", threads] = self.sysbench_mutex(threads)
            cases["pbzip2", threads] = self.compressor("pbzip2", "-b1", threads)
            cases["pigz", threads] = self.compressor("pigz", "-b32", threads)
        return cases


def text_file():
    """15 MB of words, the same each time."""
    path = SCRATCH / "text"
    if not path.exists():
        draw = random.Random(1)
        words = [bytes(draw.choices(b"abcdefghijklmnop", k=draw.randint(2, 9))) for _ in range(5000)]
        path.write_bytes(b" ".join(draw.choices(words, k=2500000)))
    return path


def row(name, threads, once, rounds):
    """Measures a program."""
    logs, libc, preload = [], [], []
    for _ in range(rounds):
        a, b, c, d = once(False), once(True), once(True), once(False)
        logs.append(math.log(b * c / (a * d)) / 2)
        libc += [a, d]
        preload += [b, c]
    mean = sum(logs) / rounds
    deviation = math.sqrt(sum((log - mean) ** 2 for log in logs) / (rounds - 1))
    half = STUDENT[min(rounds - 2, len(STUDENT) - 1)] * deviation / math.sqrt(rounds)
    # Of libc with itself: what the machine's other work alone makes of two samples of a round.
    null = sum(abs(math.log(libc[i] / libc[i + 1])) for i in range(0, len(libc), 2)) / rounds
    return {
        "program": name,
        "threads": threads,
        "threads_per_cpu": threads / os.cpu_count(),
        "rounds": rounds,
        "libc_per_second": round(sum(libc) / len(libc), 3),
        "preload_per_second": round(sum(preload) / len(preload), 3),
        "ratio": round(math.exp(mean), 3),
        "ratio_low": round(math.exp(mean - half), 3),
        "ratio_high": round(math.exp(mean + half), 3),
        "libc_to_itself": round(math.exp(null), 3),
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--library", type=pathlib.Path, default=ROOT / "target/lib/libunspin-preload.so")
    arguments.add_argument("--folder", type=pathlib.Path, default=ROOT / "target/preload-programs")
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    if given.rounds < 2:
        sys.exit("programs.py: an interval needs two rounds")
    if not given.library.is_file():
        sys.exit(f"programs.py: there is no {given.library}; run make lib")
    fetch(given.folder)
    SCRATCH.mkdir(exist_ok=True)
    rows = []
    for (name, threads), once in Programs(given.folder, given.library.resolve()).all().items():
        if not given.names or any(part in name for part in given.names):
            rows.append(row(name, threads, once, given.rounds))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    shutil.rmtree(SCRATCH)
    print(json.dumps({"rows": rows}))


main()
