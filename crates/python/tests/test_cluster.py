# SPDX-License-Identifier: MIT OR Apache-2.0
"""Sweeps on a Ray cluster of several nodes on this machine, whose workers and nodes are killed meanwhile."""

import contextlib
import dataclasses
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ray.cluster_utils import Cluster

import unspin_lab
from conftest import SCENARIO
from unspin_lab import _cluster, _given, _native

GRID = {"vm.vcpus": [1, 2, 3], "vm.lock": ["ticket", "mcs"], "vm.hold": ["1us", "2us"]}
#: 24 cells.
SEEDS = 2


@pytest.fixture(scope="module")
def cluster():
    """A head that runs nothing, where the driver is, and two nodes of one CPU each."""
    started = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        started.add_node(num_cpus=1)
    yield started
    started.shutdown()


@pytest.fixture(scope="module")
def of_one_machine():
    return unspin_lab.sweep(SCENARIO, GRID, seeds=SEEDS).rows.to_pylist()


def workers():
    """Processes that run a part just now."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cmdline").read_bytes().startswith(b"ray::run_part"):
                yield int(process.name)
        except OSError:
            continue


class Killer(threading.Thread):
    """Kills a worker that runs a part each time that so many more cells are done: what is killed does not depend on a speed."""

    def __init__(self, at):
        super().__init__()
        self.at, self.killed, self.done, self.ended = sorted(at), 0, 0, threading.Event()

    def run(self):
        while self.at and not self.ended.wait(0.005):
            running = list(workers()) if self.done >= self.at[0] else []
            if running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(running[0], signal.SIGKILL)
                    self.killed += 1
                    self.at.pop(0)


def test_nothing_is_lost_and_nothing_twice_though_workers_and_nodes_die(cluster, tmp_path):
    grid = {"vm.vcpus": [1, 2, 3], "vm.lock": ["ticket", "mcs"]}
    given = {"seeds": 10, "duration": "600ms"}
    killer, nodes = Killer(random.Random(24).sample(range(50), 5)), []

    def look(done, _):
        killer.done = done
        if done >= 12 and not nodes:
            nodes.append(cluster.worker_nodes.copy().pop())
            cluster.remove_node(nodes[0], allow_graceful=False)
            cluster.add_node(num_cpus=1)

    killer.start()
    try:
        out = tmp_path / "out"
        swept = unspin_lab.sweep(SCENARIO, grid, **given, ray=cluster.address, out=out, part_cells=2, progress=look)
    finally:
        killer.ended.set()
        killer.join()
    assert killer.killed >= 3 and len(nodes) == 1, killer.killed
    # One that was killed between its file and its answer finds the file.
    assert (swept.cells, swept.run + swept.kept, swept.rows) == (60, 60, 120)
    alone = unspin_lab.sweep(SCENARIO, grid, **given).rows.to_pylist()
    assert swept.dataset().to_table().to_pylist() == alone


def test_it_is_gone_on_with(cluster, of_one_machine, tmp_path):
    def sweep(**given):
        return unspin_lab.sweep(SCENARIO, GRID, seeds=SEEDS, ray=cluster.address, out=out, **given)

    out = f"file://{tmp_path}/a/b"
    seen = []
    first = sweep(part_cells=5, progress=lambda done, all: seen.append((done, all)))
    assert (first.run, first.kept, first.rows, first.left) == (24, 0, 48, ())
    assert seen[-1] == (24, 24)
    assert first.dataset().to_table().to_pylist() == of_one_machine
    folder = tmp_path / "a" / "b"
    names = sorted(path.name for path in folder.iterdir())
    starts = range(0, 24, 5)
    assert names == ["_sweep.json", *(f"cells-{at:09}-{min(at + 4, 23):09}.parquet" for at in starts)]
    # As many cells in a part as the folder has, whatever this cluster would take; a half-written file is named and left.
    (folder / names[1]).unlink()
    (folder / f".{names[1]}.0{_cluster.PARTIAL}").write_bytes(b"PAR1")
    again = sweep()
    assert (again.run, again.kept, again.left) == (5, 19, (f".{names[1]}.0{_cluster.PARTIAL}",))
    assert again.dataset().to_table().to_pylist() == of_one_machine
    # Damaged files are named and left, and all others are kept.
    cut, changed = folder / names[2], folder / names[4]
    cut.write_bytes(cut.read_bytes()[:-100])
    bytes_of = bytearray(changed.read_bytes())
    bytes_of[1000] ^= 4
    changed.write_bytes(bytes_of)
    with pytest.raises(unspin_lab.RunError, match="damaged files, which are left") as error:
        sweep()
    assert names[2] in str(error.value) and names[4] in str(error.value)
    assert changed.read_bytes() == bytes(bytes_of)
    cut.unlink()
    changed.unlink()
    assert sweep().run == 10
    # Another sweep, other parts, files of somebody else.
    with pytest.raises(unspin_lab.UsageError, match="holds another sweep"):
        unspin_lab.sweep(SCENARIO, GRID, seeds=3, ray=cluster.address, out=out)
    with pytest.raises(unspin_lab.UsageError, match="parts of 5 cells, not 6"):
        sweep(part_cells=6)
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(unspin_lab.UsageError, match=r"not of this sweep: notes\.txt"):
        sweep()
    (folder / "_sweep.json").write_text("{")
    with pytest.raises(unspin_lab.UsageError, match="damaged"):
        sweep()
    (folder / "_sweep.json").unlink()
    with pytest.raises(unspin_lab.UsageError, match="no sweep of a cluster"):
        sweep()


def test_a_refused_cell_is_named(cluster, tmp_path):
    with pytest.raises(unspin_lab.ScenarioError) as error:
        unspin_lab.sweep(SCENARIO, {"vm.vcpus": [1, 65]}, ray=cluster.address, out=tmp_path / "out")
    assert error.value.key == "vm.0.vcpus" and "from 1 to 64" in error.value.allowed


def test_ctrl_c(cluster, tmp_path):
    def sweep(**given):
        return unspin_lab.sweep(
            SCENARIO, GRID, duration="2s", ray=cluster.address, out=tmp_path / "out", part_cells=1, **given
        )

    def interrupt():
        some_are_done.wait()
        os.kill(os.getpid(), signal.SIGINT)

    some_are_done = threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    somebody = threading.Thread(target=interrupt, daemon=True)
    somebody.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sweep(progress=lambda *_: some_are_done.set())
    finally:
        signal.signal(signal.SIGINT, before)
    deadline = time.monotonic() + 20
    while list(workers()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not list(workers()), "cancelled parts ended"
    swept = sweep()
    assert swept.kept >= 1 and swept.run + swept.kept == 12


def test_arguments():
    with pytest.raises(unspin_lab.UsageError, match="out says where"):
        unspin_lab.sweep(SCENARIO, GRID, ray=True)
    with pytest.raises(unspin_lab.UsageError, match="part_cells"):
        unspin_lab.sweep(SCENARIO, GRID, part_cells=3)
    with pytest.raises(unspin_lab.RunError, match="no Ray cluster at"):
        unspin_lab.sweep(SCENARIO, GRID, ray="127.0.0.1:1", out="/nonexistent")


def test_how_many_cells_a_part_has():
    sizes = {(24, 2): 2, (100_000, 2): 1_000, (10**7, 64_000): 100, (10**9, 64_000): 10_000, (1, 64): 1}
    assert {given: _cluster.cells_of_a_part(*given) for given in sizes} == sizes


def test_a_worker_of_another_build_is_refused(tmp_path):
    source = _given.source(SCENARIO)
    cells, identity = _native.sweep_plan(source, [], [("vm.vcpus", ["1", "2"])], 1)
    plan = _cluster.Plan(
        source.parts(), [], [("vm.vcpus", ["1", "2"])], 1, cells, 2, str(tmp_path), dict(identity), _native.COMMIT
    )
    assert _cluster.run_part(plan, 0) == ("run", 4)
    assert _cluster.run_part(plan, 0) == ("kept", 4)
    other = dataclasses.replace(plan, commit="of-yesterday")
    what, error = _cluster.run_part(other, 0)
    assert what == "refused" and "of-yesterday" in str(error) and isinstance(error, unspin_lab.RunError)


def test_the_command(cluster, of_one_machine, unspin, scenario, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPIN_PYTHON", sys.executable)
    out = tmp_path / "out"
    words = ["lab", "sweep", scenario, "--ray", cluster.address, "--out", out, "--seeds", SEEDS]
    words += [word for key, values in GRID.items() for word in ("--set", f"{key}={','.join(map(str, values))}")]
    commit, printed = unspin(*words)
    assert commit == unspin_lab.COMMIT, "build the wheel and unspin of one state"
    row = printed["sweep"][0]
    assert (row["cells"], row["run"], row["kept"], row["rows"], row["file"]) == (24, 24, 0, 48, str(out))
    swept = unspin_lab.sweep(scenario, GRID, seeds=SEEDS, ray=cluster.address, out=out)
    assert swept.kept == 24 and swept.dataset().to_table().to_pylist() == of_one_machine


def test_the_command_without_a_python_that_has_it(scenario, tmp_path):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexit 3\n")
    fake.chmod(0o755)
    binary = os.environ.get("UNSPIN", "unspin")
    words = [binary, "lab", "sweep", scenario, "--ray", "local", "--out", tmp_path / "out", "--set", "vm.vcpus=1,2"]
    ended = subprocess.run(words, env={**os.environ, "UNSPIN_PYTHON": str(fake)}, capture_output=True, text=True)
    assert ended.returncode == 2 and "unspin_lab" in ended.stderr, ended
    assert not (tmp_path / "out").exists()
