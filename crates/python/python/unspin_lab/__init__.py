# SPDX-License-Identifier: MIT OR Apache-2.0
"""The lab of unspin: overcommitted KVM hosts, their schedulers and their guests' locks, simulated from a seed.

>>> import unspin_lab
>>> scenario = {
...     "duration": "60ms",
...     "warm_up": "10ms",
...     "host": {"cpus": 2, "ple_window": 200},
...     "vm": [{"vcpus": 4, "lock": "ticket", "user_work": "3000 loops", "hold": {"exponential": "300 loops"}, "pv_page": True}],
... }
>>> run = unspin_lab.run(scenario)
>>> run.vms["lock"], run.vms["vcpus"]
(['ticket'], [4])
>>> compared = unspin_lab.compare(scenario, ["loan"], seeds=3)
>>> compared.policies["policy"]
['stock', 'loan', 'ideal']
>>> compared.policies["verdict"][1]
'higher'

The same seed and commit give the same numbers as the commands ``unspin lab run``, ``compare`` and ``sweep``.
Every key of a scenario, with what it may be: ``unspin_lab.scenario_schema()``, and the fields of ``Scenario``, ``Vm``, ``Host``
and ``LabSettings``.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version as _version
from pathlib import Path
from typing import Any, Literal, overload

from . import _cluster, _find, _given, _native
from ._given import Costs, ScenarioLike, Settings
from ._native import COMMIT, Table
from ._results import ClusterSweep, Comparison, Finding, Findings, Run, Sweep
from .errors import Error, RunError, ScenarioError, UsageError
from .scenario import Host, LabSettings, NoiseRates, NoiseSource, Scenario, Vm

__version__ = _version("unspin-lab")
__all__ = [
    "COMMIT",
    "ClusterSweep",
    "Comparison",
    "Error",
    "Finding",
    "Findings",
    "Host",
    "LabSettings",
    "NoiseRates",
    "NoiseSource",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "Table",
    "UsageError",
    "Vm",
    "check",
    "compare",
    "costs",
    "find",
    "locks",
    "policies",
    "run",
    "scenario_schema",
    "sweep",
]


def run(
    scenario: ScenarioLike,
    *,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    policy: str | None = None,
    costs: Costs | None = None,
    trace: str | os.PathLike[str] | None = None,
    record: str | os.PathLike[str] | None = None,
) -> Run:
    """Runs a scenario on a simulated host, as ``unspin lab run``. Other Python threads go on meanwhile; Ctrl-C ends it.

    scenario: a path, a text in TOML, a mapping with a scenario's keys, or a dataclass such as ``Scenario``.
    seed, duration, set: override it, as in ``set={"vm.vcpus": 4, "lab.scheduler": "cfs-4.13"}``; ``vm.KEY`` is of all groups.
    policy: a change of it, words as ``compare`` takes them.
    costs: what things cost, by name, or a file of ``unspin lab calibrate``.
    trace: writes the timeline to this file, for ui.perfetto.dev.
    record: writes what a host's observer would have seen to this folder, for ``unspin outcomes`` and ``explain``.

    >>> text = '''
    ... iterations = 100
    ... [[vm]]
    ... vcpus = 2
    ... lock = "mcs"
    ... hold = "1us"
    ... '''
    >>> run(text, set={"vm.count": 3}).vcpus["operations"]
    [100, 100, 100, 100, 100, 100]
    """
    settings = _given.settings(set, seed=seed, duration=duration, costs=costs, policy=policy)
    text, tables = _native.run(_given.source(scenario), settings, _path(trace), _path(record))
    return Run(scenario=text, **dict(tables))


def compare(
    scenario: ScenarioLike,
    policies: Sequence[str | os.PathLike[str]],
    *,
    seeds: int = 20,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    costs: Costs | None = None,
    workers: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Comparison:
    """Compares policies with the scenario as it is and with an ideal host, seed by seed, as ``unspin lab compare``.

    policies: a change each, words apart by commas: a host scheduler (``"eevdf-6.6"``), a rule for candidates (``"strict"``), a
    window control (``"apple"``), steering policies (``"loan"``, ``"auto"``), a C file of your own (``"./mine.c"``), or
    ``KEY=VALUE``. ``policies()`` lists the words.
    seeds: so many, from the scenario's seed on. workers: so many runs at a time; as many as there are CPUs when absent.
    progress: called with the runs done and all runs. The others: see ``run``.
    """
    if isinstance(policies, str | os.PathLike):
        raise TypeError("policies is a list, as in ['loan', 'strict']")
    words = [os.fspath(policy) for policy in policies]
    settings = _given.settings(set, seed=seed, duration=duration, costs=costs)
    _positive(seeds=seeds, workers=workers)
    tables, notes = _native.compare(_given.source(scenario), settings, words, seeds, workers, progress)
    return Comparison(**dict(tables), notes=tuple(notes))


@overload
def sweep(
    scenario: ScenarioLike,
    grid: Mapping[str, Any],
    *,
    seeds: int = 1,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    policy: str | None = None,
    costs: Costs | None = None,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    ray: None = None,
    part_cells: None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep: ...
@overload
def sweep(
    scenario: ScenarioLike,
    grid: Mapping[str, Any],
    *,
    seeds: int = 1,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    policy: str | None = None,
    costs: Costs | None = None,
    workers: None = None,
    out: str | os.PathLike[str],
    ray: str | Literal[True],
    part_cells: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ClusterSweep: ...
def sweep(
    scenario: ScenarioLike,
    grid: Mapping[str, Any],
    *,
    seeds: int = 1,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    policy: str | None = None,
    costs: Costs | None = None,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    ray: str | Literal[True] | None = None,
    part_cells: int | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Sweep | ClusterSweep:
    """Runs a scenario with every value of each key of the grid, each with each, as ``unspin lab sweep``.

    grid: values by key, as in ``{"vm.vcpus": [2, 4, 8], "vm.lock": ["ticket", "mcs"]}``, or a text: ``{"vm.vcpus": "2..8"}``.
    seeds: so many of each point. The others: see ``run`` and ``compare``.
    out: a folder that keeps the results as Parquet; what a kill leaves there is gone on with. Without it nothing is written,
    and a policy may be a C file.
    ray: the address of a Ray cluster that runs the cells (``"auto"``, ``"HOST:6379"``, ``"ray://HOST:10001"``), or ``True`` for
    one of this machine's own. Needs ``unspin-lab[ray]``, and the same wheel on every node. ``out`` is then a folder that all
    nodes see, or any URL that fsspec takes, and gets a file for each ``part_cells`` cells; the same call goes on with it.

    >>> scenario = {"iterations": 9, "vm": [{"vcpus": 1, "lock": "ticket", "hold": "1us"}]}
    >>> swept = sweep(scenario, {"vm.vcpus": "1..3", "vm.lock": ["mcs"]})
    >>> swept.rows["set_vm_vcpus"], swept.rows["operations"]
    ([1, 2, 3], [9, 18, 27])
    """
    settings = _given.settings(set, seed=seed, duration=duration, costs=costs, policy=policy)
    axes = _given.axes(grid)
    _positive(seeds=seeds, workers=workers, part_cells=part_cells)
    source = _given.source(scenario)
    if ray is not None:
        if out is None or workers is not None:
            raise UsageError("with ray, out says where the results go, and the cluster how many workers there are")
        folder = os.fspath(out)
        return _cluster.sweep(
            source, settings, axes, seeds, address=ray, out=folder, part_cells=part_cells, progress=progress
        )
    if part_cells is not None:
        raise UsageError("part_cells is how many cells a task of ray runs: give ray, too")
    tables, kept = _native.sweep(source, settings, axes, seeds, workers, _path(out), progress)
    rows, cells = dict(tables)["rows"], dict(tables)["cells"]
    if kept is None:
        return Sweep(rows=rows, cells=cells, file=None, run=len(cells), kept=0)
    file, ran, there = kept
    return Sweep(rows=rows, cells=cells, file=Path(file), run=ran, kept=there)


def find(
    scenario: ScenarioLike,
    policy: str | os.PathLike[str],
    space: Mapping[str, Any],
    *,
    trials: int = 200,
    seeds: int = 3,
    verify_seeds: int = 10,
    keep: int = 10,
    search_seed: int = 1,
    seed: int | None = None,
    duration: str | None = None,
    set: Settings | None = None,
    costs: Costs | None = None,
    workers: int | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Findings:
    """Searches a space of scenarios for those in which a policy harms, as ``unspin lab find``. Needs ``unspin-lab[find]``.

    policy: one change, as ``compare`` takes it. space: values by key, as the grid of ``sweep``.
    trials: so many points are looked at, each by ``compare`` from ``seeds`` seeds; optuna chooses them, and begins from ``search_seed``.
    verify_seeds: points that looked harmful are compared again from so many new seeds. What is found are those whose interval then
    lies below 1, ``keep`` at most; of twenty points without harm one may be among them by chance.
    out: a new folder that gets a scenario for each. The others: see ``run`` and ``compare``.

    >>> scenario = {"duration": "20ms", "vm": [{"vcpus": 4, "lock": "ticket", "hold": {"exponential": "1us"}, "pv_page": True}]}
    >>> found = find(scenario, "loan", {"vm.count": "1..2", "vm.lock": ["ticket", "mcs"]}, trials=4, seeds=2, verify_seeds=2)
    >>> found.points, all(finding.ratio_high < 1 for finding in found.findings)
    (4, True)
    """
    settings = _given.settings(set, seed=seed, duration=duration, costs=costs)
    _positive(trials=trials, seeds=seeds, verify_seeds=verify_seeds, keep=keep, search_seed=search_seed, workers=workers)
    return _find.find(
        _given.source(scenario),
        settings,
        policy=os.fspath(policy),
        axes=_given.axes(space),
        trials=trials,
        seeds=seeds,
        verify_seeds=verify_seeds,
        keep=keep,
        search_seed=search_seed,
        workers=workers,
        out=None if out is None else Path(out),
        progress=progress,
    )


def check(scenario: ScenarioLike, *, set: Settings | None = None, policy: str | None = None) -> str:
    """The scenario in its canonical form, every key with its value, checked for the lab; a TOML text that ``unspin`` reads, too.

    >>> print(check({"iterations": 9, "vm": [{"vcpus": 1, "lock": "ticket", "hold": "1us"}]}).splitlines()[0])
    name = "unnamed"
    """
    return _given.source(scenario).check(_given.settings(set, policy=policy))


def scenario_schema() -> dict[str, Any]:
    """The JSON Schema of scenarios.

    >>> scenario_schema()["properties"]["seed"]["default"]
    1
    """
    schema: dict[str, Any] = json.loads(_native.schema())
    return schema


def policies() -> dict[str, list[str]]:
    """The words that a policy may consist of, by kind: ``schedulers``, ``candidates``, ``windows`` and ``steering``.

    >>> "loan" in policies()["steering"], "cfs-4.13" in policies()["schedulers"]
    (True, True)
    """
    return dict(_native.words())


def locks() -> list[str]:
    """The names of the locks that a VM may take.

    >>> "qspinlock" in locks()
    True
    """
    return _native.locks()


def costs(of: ScenarioLike | Literal["testbed"] | None = None, *, set: Settings | None = None) -> dict[str, int]:
    """What things cost in the lab, by name: ns, unless a name says otherwise.

    of: nothing for the defaults, ``"testbed"`` for those of the deterministic testbed, or a scenario for its own.

    >>> costs()["switch_ns"] < costs("testbed")["switch_ns"]
    True
    """
    settings = _given.settings(set)
    if of == "testbed":
        pairs = (word.removeprefix("lab.costs.").split("=") for word in _native.testbed_costs())
        return {name: int(cost) for name, cost in pairs}
    source = None if of is None else _given.source(of)
    of_lab: dict[str, int] = json.loads(_native.costs(source, settings))
    return of_lab


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def _positive(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and not 1 <= number <= 100_000:
            raise UsageError(f"{name} cannot be {number}; expected a whole number from 1 to 100000")
