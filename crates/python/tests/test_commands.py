# SPDX-License-Identifier: MIT OR Apache-2.0
"""The numbers are those of the commands, to the digit."""

import pyarrow.parquet
import pytest

import unspin_lab

#: What depends on this machine.
MEASURED = {"wall_ns", "events_per_second", "acquisitions_per_second", "resident_bytes"}
SETTINGS = ["lab.scheduler=cfs-4.13", "vm.vcpus=3"]


def words(settings):
    return [word for setting in settings for word in ("--set", setting)]


def simulated(rows, without=MEASURED):
    return [{key: value for key, value in row.items() if key not in without} for row in rows]


@pytest.fixture(autouse=True)
def same_commit(unspin, scenario):
    """Another build is another lab: nothing to compare."""
    commit, _ = unspin("lab", "run", scenario)
    of = [build.removesuffix("-dirty") for build in (commit, unspin_lab.COMMIT)]
    assert of[0] == of[1], "unspin and the wheel are not of the same commit; build both"


def test_run(unspin, scenario):
    _, printed = unspin("lab", "run", scenario, "--seed", 7, *words(SETTINGS))
    run = unspin_lab.run(scenario, seed=7, set=SETTINGS)
    tables = {"run": run.run, "event": run.events, "vm": run.vms, "vcpu": run.vcpus, "cpu": run.cpus}
    assert set(printed) == set(tables)
    for name, table in tables.items():
        assert list(printed[name][0]) == table.column_names
        assert simulated(table.to_pylist()) == simulated(printed[name])
    given = unspin_lab.run(scenario.read_text(), seed=7, set={"lab.scheduler": "cfs-4.13", "vm.vcpus": 3})
    assert given.vcpus.to_pylist() == run.vcpus.to_pylist()


def test_compare(unspin, scenario):
    policies = ["strict", "loan", "cfs-4.13,strict"]
    options = [word for policy in policies for word in ("--policy", policy)]
    _, printed = unspin("lab", "compare", scenario, "--seeds", 3, "--duration", "20ms", *options)
    compared = unspin_lab.compare(scenario, policies, seeds=3, duration="20ms")
    assert compared.policies.to_pylist() == printed["policy"]
    assert compared.samples.to_pylist() == printed["sample"]
    assert any(note.startswith("stock is two as it is") for note in compared.notes)


def test_sweep(unspin, scenario, tmp_path):
    axes = ["vm.vcpus=1..3", "vm.lock=ticket,mcs", "vm.hold=1us,2us"]
    out = tmp_path / "of-command"
    commit, printed = unspin("lab", "sweep", scenario, "--out", out, "--seeds", 2, *words(axes))
    grid = {"vm.vcpus": [1, 2, 3], "vm.lock": ["ticket", "mcs"], "vm.hold": ["1us", "2us"]}
    swept = unspin_lab.sweep(scenario, grid, seeds=2)
    assert swept.cells.to_pylist() == printed["cell"]
    file = pyarrow.parquet.read_table(out / "sweep.parquet")
    assert swept.rows.to_pylist() == file.to_pylist()
    # What is there is gone on with: also what the command has done, if both are the same build to the last change.
    mine = out if commit == unspin_lab.COMMIT else tmp_path / "mine"
    for ran in [0 if mine == out else 24, 0]:
        kept = unspin_lab.sweep(scenario, grid, seeds=2, out=mine)
        assert (kept.run, kept.kept, kept.file) == (ran, 24 - ran, mine / "sweep.parquet")
        assert kept.rows.to_pylist() == swept.rows.to_pylist()


def test_any_number_of_workers_gives_the_same(scenario):
    def rows(workers):
        return unspin_lab.sweep(scenario, {"seed": "1..6"}, workers=workers).rows.to_pylist()

    assert rows(1) == rows(4)


def test_trace_and_recording(scenario, tmp_path):
    unspin_lab.run(scenario, trace=tmp_path / "trace")
    assert (tmp_path / "trace").stat().st_size > 1_000
    unspin_lab.run(scenario, record=tmp_path / "recording")
    assert (tmp_path / "recording" / "recording.json").exists()
    with pytest.raises(unspin_lab.UsageError, match="exclude each other"):
        unspin_lab.run(scenario, trace="a", record="b")
