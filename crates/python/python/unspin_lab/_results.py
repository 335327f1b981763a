# SPDX-License-Identifier: MIT OR Apache-2.0
"""What comes of runs, comparisons and sweeps."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._native import Table


@dataclass(frozen=True, repr=False)
class Run:
    """One run, as ``unspin lab run`` prints it. Rates and shares are of the window after the warm-up, counters of all of it."""

    #: The scenario that ran, in its canonical form.
    scenario: str
    #: The run as a whole: one row.
    run: Table
    #: How many events of each kind there were.
    events: Table
    #: A row for each VM.
    vms: Table
    #: A row for each vCPU.
    vcpus: Table
    #: A row for each pCPU.
    cpus: Table

    def __str__(self) -> str:
        parts = ("", self.run), ("Events", self.events), ("VMs", self.vms), ("vCPUs", self.vcpus), ("pCPUs", self.cpus)
        return "\n\n".join(f"{title}\n{table}".lstrip("\n") for title, table in parts)

    def __repr__(self) -> str:
        return f"<unspin_lab.Run of {len(self.vms)} VMs>"


@dataclass(frozen=True, repr=False)
class Comparison:
    """A scenario as it is, each policy, and the ideal, as ``unspin lab compare`` prints them."""

    #: A row for each column: ``stock``, the policies, ``ideal``; ratios with their 95 % intervals.
    policies: Table
    #: A row for each seed of each column.
    samples: Table
    #: What the columns are, in sentences.
    notes: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([str(self.policies), *self.notes])

    def __repr__(self) -> str:
        return f"<unspin_lab.Comparison: {', '.join(self.policies['policy'])}>"


@dataclass(frozen=True, repr=False)
class Sweep:
    """A grid of runs, as ``unspin lab sweep`` leaves it."""

    #: A row for each VM of each cell; the columns ``set_...`` are the axes.
    rows: Table
    #: A row for each cell, its VMs together.
    cells: Table
    #: The Parquet file of all rows, if ``out`` was given.
    file: Path | None
    #: Cells that were run now.
    run: int
    #: Cells that stood in the folder ``out`` already.
    kept: int

    def __str__(self) -> str:
        return str(self.cells)

    def __repr__(self) -> str:
        return f"<unspin_lab.Sweep of {len(self.cells)} cells>"


@dataclass(frozen=True, repr=False)
class ClusterSweep:
    """A grid of runs on a Ray cluster: a folder of Parquet files, with the rows that one machine has of the same grid."""

    #: Where they are: a path, or a URL that fsspec takes.
    folder: str
    #: Cells of the grid; each of them is in one file.
    cells: int
    #: Cells that were run now.
    run: int
    #: Cells that stood there already.
    kept: int
    #: Rows: one for each VM of each cell.
    rows: int
    #: Files that killed workers left half-written. Nothing reads them.
    left: tuple[str, ...]

    def dataset(self) -> Any:
        """All rows as a ``pyarrow.dataset.Dataset``, cell after cell, none of them in memory yet."""
        import fsspec
        import pyarrow.dataset

        system, root = fsspec.core.url_to_fs(self.folder)
        files = sorted(path for path in system.ls(root, detail=False) if path.rsplit("/", 1)[-1].startswith("cells-"))
        return pyarrow.dataset.dataset(files, filesystem=system, format="parquet")

    def __repr__(self) -> str:
        return f"<unspin_lab.ClusterSweep of {self.cells} cells in {self.folder}>"


@dataclass(frozen=True)
class Finding:
    """A scenario in which a policy does less than the scenario does without it."""

    #: What its scenario sets, by key.
    set: dict[str, str]
    #: Policy to stock, all VMs together, from seeds that the search did not use; 0.001 where nothing was done under the policy.
    ratio: float
    #: Its 95 % interval; nothing where nothing was done.
    ratio_low: float | None
    ratio_high: float | None
    #: The same of the VM that lost most.
    worst_vm_ratio: float | None
    #: By how much the lab was off in measured cells like this one, either way; or why that is not known.
    lab_error: float | None
    lab_error_unknown: str | None
    #: The scenario, in its canonical form.
    scenario: str

    def __str__(self) -> str:
        setting = " ".join(f"{key}={value}" for key, value in self.set.items())
        interval = "" if self.ratio_low is None else f" ({self.ratio_low:.3f} to {self.ratio_high:.3f})"
        return f"{self.ratio:.3f}{interval}  {setting}"


@dataclass(frozen=True, repr=False)
class Findings:
    """What a search has found, the worst first."""

    policy: str
    #: Points of the space.
    points: int
    #: Of them, those that were simulated.
    simulated: int
    #: Those that are no scenario: values that do not go together.
    refused: int
    #: Those that looked harmful and were simulated again, from new seeds.
    verified: int
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        found = len(self.findings) or "nothing"
        head = f"{self.policy}: {self.simulated} of {self.points} points simulated, {self.verified} verified, {found} found"
        return "\n".join([head, *map(str, self.findings)])

    def __repr__(self) -> str:
        return f"<unspin_lab.Findings: {len(self.findings)} of {self.policy}>"
