# SPDX-License-Identifier: MIT OR Apache-2.0
"""What a Ray cluster costs a sweep: the same cells, of one event each, on one machine and on a cluster of its own CPUs.

Run from the top of the repository with a Python that has unspin_lab[ray]; each line of standard output is a row.
"""

import json
import multiprocessing
import os
import resource
import tempfile
import time

import unspin_lab

SCENARIO = {"iterations": 1, "vm": [{"vcpus": 1, "lock": "ticket", "hold": "1us"}]}


def seconds(do):
    began = time.perf_counter()
    result = do()
    return result, time.perf_counter() - began


def measure(cells, out):
    cpus = os.cpu_count()
    grid = {"seed": f"1..{cells}"}
    swept, cluster_s = seconds(lambda: unspin_lab.sweep(SCENARIO, grid, ray=True, out=out))
    kept, again_s = seconds(lambda: unspin_lab.sweep(SCENARIO, grid, ray=True, out=out))
    assert (swept.run, kept.kept) == (cells, cells)
    # Before the rows of one machine are in this process.
    resident_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    _, one_s = seconds(lambda: unspin_lab.sweep(SCENARIO, grid, workers=cpus))
    overhead_ms = (cluster_s - one_s) * cpus * 1000 / cells
    return {
        "commit": unspin_lab.COMMIT,
        "cells": cells,
        "one_machine_s": round(one_s, 2),
        "cluster_s": round(cluster_s, 2),
        "cluster_again_s": round(again_s, 2),
        "overhead_ms_per_cell": round(overhead_ms, 3),
        "driver_resident_mib": round(resident_mib),
        "files": len(os.listdir(out)) - 1,
    }


if __name__ == "__main__":
    # Each in a process of its own, for its memory.
    for number in (10_000, 100_000):
        with tempfile.TemporaryDirectory() as folder, multiprocessing.get_context("spawn").Pool(1) as pool:
            row = pool.apply(measure, (number, f"{folder}/sweep"))
        print(json.dumps(row, separators=(",", ":")), flush=True)
