# SPDX-License-Identifier: MIT OR Apache-2.0
"""A sweep on a Ray cluster: the grid is cut into parts of consecutive cells, each part is a task, and each task writes one file.

Ray distributes, retries and counts; here is only what a part is and when its file is one. A file gets its name when it is whole, so
that a task may be killed at any time and run again, also twice at once: both write the same bytes.
"""

import dataclasses
import json
import os
import platform
import re
import socket
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from . import _native
from ._given import Axes
from ._results import ClusterSweep
from .errors import Error, RunError, UsageError

#: What the folder says of the sweep that it holds. Readers of data sets leave out what begins with an underscore or a point.
MANIFEST = "_sweep.json"
#: Of that file.
FORMAT_VERSION = 1
#: What a file is called until it is whole, with something unique before it.
PARTIAL = ".partial"
#: Most cells of a part: some seconds of work, and a file of some hundred KiB.
PART_CELLS_MAX = 1_000
#: Most parts, and so files of the folder, unless their cells are given: a listing of so many is some MB.
PARTS_MAX = 100_000
#: Parts for each CPU of the cluster, so that all end at about the same time.
PARTS_EACH = 8
#: Tasks that wait or run, for each CPU of the cluster: what bounds the memory of whoever submits them.
SUBMITTED_EACH = 2
#: How often a task whose worker or node died is run again.
RETRIES = 20
#: How long a cluster's address may take to answer, seconds.
KNOCK_S = 10
#: How long finished tasks are waited for at a time, seconds.
WAIT_S = 0.2


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that a task needs to know, the same for each."""

    #: Of ``Source.parts()``.
    source: tuple[str, str, str, bool]
    settings: list[str]
    axes: Axes
    seeds: int
    #: Of the whole grid.
    cells: int
    #: Cells of a part; the last one may have fewer.
    part_cells: int
    #: A path or an fsspec URL, the same for all nodes.
    folder: str
    #: What each file says of the sweep, the commit included.
    identity: dict[str, str]
    #: The build that planned it.
    commit: str

    @property
    def parts(self) -> int:
        return -(-self.cells // self.part_cells)

    def numbers(self, part: int) -> range:
        """The cells of a part."""
        first = part * self.part_cells
        return range(first, min(first + self.part_cells, self.cells))

    def name(self, part: int) -> str:
        """The file of a part."""
        numbers = self.numbers(part)
        return f"cells-{numbers[0]:09}-{numbers[-1]:09}.parquet"

    def manifest(self) -> dict[str, Any]:
        return {
            "format_version": FORMAT_VERSION,
            "identity": self.identity,
            "cells": self.cells,
            "part_cells": self.part_cells,
        }


class Folder:
    """The folder of a sweep, wherever fsspec finds it."""

    def __init__(self, folder: str) -> None:
        import fsspec

        self.url = folder
        self.system, self.root = fsspec.core.url_to_fs(folder)

    def path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    def names(self) -> list[str]:
        """What is in it, sorted; nothing if there is no such folder."""
        self.system.invalidate_cache()
        try:
            found = self.system.ls(self.root, detail=False)
        except FileNotFoundError:
            return []
        return sorted(name for name in (path.rstrip("/").rsplit("/", 1)[-1] for path in found) if name)

    def write(self, name: str, content: Any) -> None:
        """A file, whole or not there."""
        partial = self.path(f".{name}.{uuid.uuid4().hex}{PARTIAL}")
        with self.system.open(partial, "wb") as file:
            file.write(content)
            file.flush()
            if "file" in _protocols(self.system):
                os.fsync(file.fileno())
        self.system.mv(partial, self.path(name))


def _protocols(system: Any) -> tuple[str, ...]:
    return (system.protocol,) if isinstance(system.protocol, str) else tuple(system.protocol)


def run_part(plan: Plan, part: int) -> tuple[str, Any]:
    """What a task does. Returns ``("run", rows)``, ``("kept", rows)``, ``("damaged", why)`` or ``("refused", an exception)``."""
    try:
        if plan.commit != _native.COMMIT:
            return "refused", RunError(
                f"the worker on {platform.node()} has build {_native.COMMIT} of unspin_lab, this is {plan.commit}: install the same"
                " wheel on every node"
            )
        folder, name, numbers = Folder(plan.folder), plan.name(part), plan.numbers(part)
        if folder.system.exists(folder.path(name)):
            return _look(folder, name, numbers, plan.identity)
        source = _native.Source.of_parts(*plan.source)
        rows = _native.sweep_part(source, plan.settings, plan.axes, plan.seeds, numbers.start, numbers.stop)
        folder.write(name, _parquet(rows.to_arrow(), plan.identity))
        return "run", len(rows)
    except Error as error:
        return "refused", error


def _parquet(table: Any, identity: dict[str, str]) -> Any:
    """The file of a part; the same bytes for the same rows."""
    import pyarrow
    import pyarrow.parquet

    file = pyarrow.BufferOutputStream()
    named = table.replace_schema_metadata(identity)
    pyarrow.parquet.write_table(named, file, compression="snappy", write_page_checksum=True)
    return file.getvalue()


def _look(folder: Folder, name: str, numbers: range, identity: dict[str, str]) -> tuple[str, Any]:
    """Whether a file that is there has all rows of these cells, as they were written."""
    import pyarrow
    import pyarrow.parquet

    try:
        with folder.system.open(folder.path(name), "rb") as file:
            table = pyarrow.parquet.read_table(file, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        return "damaged", str(error).splitlines()[0]
    said = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if any(said.get(key) != value for key, value in identity.items()):
        return "damaged", "it is of another sweep"
    if table["cell"].unique().to_pylist() != list(numbers):
        return "damaged", "it does not have the rows of its cells"
    return "kept", len(table)


def _open(plan: Plan, part_cells: int | None) -> tuple[Plan, list[str]]:
    """The plan as the folder has it, and the files that interrupted tasks left. Writes the manifest into a new or empty folder."""
    folder = Folder(plan.folder)
    names = folder.names()
    if not names:
        folder.system.makedirs(folder.root, exist_ok=True)
        folder.write(MANIFEST, json.dumps(plan.manifest(), indent=1).encode())
        return plan, []
    if MANIFEST not in names:
        raise UsageError(f"{folder.url} holds no sweep of a cluster, but {_some(names)}: take a new or an empty folder")
    there = _manifest(folder)
    for what, mine, other in _differences(plan, there):
        raise UsageError(f"{folder.url} holds another sweep: {what} is {other} there and {mine} here")
    if part_cells not in (None, there["part_cells"]):
        raise UsageError(f"{folder.url} has parts of {there['part_cells']} cells, not {part_cells}")
    plan = dataclasses.replace(plan, part_cells=there["part_cells"])
    left = [name for name in names if name.startswith(".") and name.endswith(PARTIAL)]
    mine = {MANIFEST, *left}
    foreign = [name for name in names if name not in mine and not _is_part(name, plan)]
    if foreign:
        raise UsageError(f"{folder.url} holds files that are not of this sweep: {_some(foreign)}; they are left, move them away")
    return plan, left


def _manifest(folder: Folder) -> dict[str, Any]:
    try:
        with folder.system.open(folder.path(MANIFEST), "rb") as file:
            there = json.loads(file.read())
        if there["format_version"] != FORMAT_VERSION:
            raise UsageError(f"{folder.url}/{MANIFEST} has version {there['format_version']}, this build writes {FORMAT_VERSION}")
        cells, part_cells = there["cells"], there["part_cells"]
        if not (isinstance(part_cells, int) and isinstance(cells, int) and 0 < part_cells and isinstance(there["identity"], dict)):
            raise ValueError("a number that cannot be")
    except (ValueError, KeyError, TypeError, OSError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"{folder.url}/{MANIFEST} is damaged ({error}); it is left, take another folder") from None
    return dict(there)


def _differences(plan: Plan, there: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    if there["cells"] != plan.cells:
        yield "the number of cells", plan.cells, there["cells"]
    for key, value in plan.identity.items():
        if there["identity"].get(key) != value:
            yield key.removeprefix("unspin."), _short(value), _short(there["identity"].get(key))


def _short(value: Any) -> str:
    return repr(value if len(str(value)) <= 80 else f"{str(value)[:80]}...")


def _is_part(name: str, plan: Plan) -> bool:
    found = re.fullmatch(r"cells-(\d{9})-\d{9}\.parquet", name)
    if not found:
        return False
    part, rest = divmod(int(found[1]), plan.part_cells)
    return rest == 0 and part < plan.parts and plan.name(part) == name


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + more


def _ray() -> Any:
    try:
        import fsspec  # noqa: F401
        import pyarrow.parquet  # noqa: F401
        import ray
    except ImportError as error:
        raise UsageError(f"a sweep with ray needs more packages ({error}): pip install 'unspin-lab[ray]'") from None
    return ray


def sweep(
    source: _native.Source,
    settings: list[str],
    axes: Axes,
    seeds: int,
    *,
    address: str | bool,
    out: str,
    part_cells: int | None,
    progress: Callable[[int, int], object] | None,
) -> ClusterSweep:
    """The sweep of these cells on the cluster at that address, or on one of this machine's own; see ``unspin_lab.sweep``."""
    ray = _ray()
    cells, identity = _native.sweep_plan(source, settings, axes, seeds)
    with _Connection(ray, address):
        given = part_cells or cells_of_a_part(cells, _cpus(ray))
        folder = out if "://" in out else os.path.abspath(out)
        plan = Plan(source.parts(), settings, axes, seeds, cells, given, folder, dict(identity), _native.COMMIT)
        plan, left = _open(plan, part_cells)
        return _submit(ray, plan, left, progress)


def cells_of_a_part(cells: int, cpus: float) -> int:
    """How many cells a part has, unless it is said: several parts for each CPU, none too long, not too many files."""
    several = -(-cells // int(PARTS_EACH * cpus))
    return max(1, min(PART_CELLS_MAX, several), -(-cells // PARTS_MAX))


class _Connection:
    """To a cluster, or to one that runs already; a cluster that was started here ends with it."""

    def __init__(self, ray: Any, address: str | bool) -> None:
        self.ray = ray
        self.is_ours = not ray.is_initialized()
        if not self.is_ours:
            return
        own = address is True or address == "local"
        if isinstance(address, str) and not own:
            _knock(address)
        given = {"include_dashboard": False} if own else {}
        try:
            ray.init(address="local" if own else address, log_to_driver=False, logging_level="ERROR", **given)
        except (ConnectionError, ValueError, RuntimeError, TimeoutError) as error:
            raise RunError(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from None

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        if self.is_ours:
            self.ray.shutdown()


def _knock(address: str) -> None:
    """Whether anybody listens at HOST:PORT or ray://HOST:PORT: Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not (host and port.isdecimal()):
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise RunError(f"no Ray cluster at {address}: {error}") from None


def _cpus(ray: Any) -> float:
    return max(1.0, ray.cluster_resources().get("CPU", 1.0))


def _submit(ray: Any, plan: Plan, left: list[str], progress: Callable[[int, int], object] | None) -> ClusterSweep:
    task = ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(run_part)
    given = ray.put(plan)
    parts = iter(range(plan.parts))
    waiting: dict[Any, int] = {}
    counted = {"run": 0, "kept": 0, "damaged": 0}
    rows, damaged = 0, []
    try:
        while True:
            while len(waiting) < SUBMITTED_EACH * _cpus(ray) and (part := next(parts, None)) is not None:
                waiting[task.remote(given, part)] = part
            if not waiting:
                break
            ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=WAIT_S, fetch_local=False)
            for one in ready:
                part = waiting.pop(one)
                what, result = _result(ray, one, plan, part)
                counted[what] += len(plan.numbers(part))
                if what == "damaged":
                    damaged.append(f"{plan.name(part)} ({result})")
                else:
                    rows += result
            if ready and progress is not None:
                progress(sum(counted.values()), plan.cells)
    finally:
        # Nothing but after an exception: Ctrl-C, a refused cell. Files that are whole stay.
        for one in waiting:
            ray.cancel(one)
    if damaged:
        raise RunError(f"{plan.folder} holds damaged files, which are left: {_some(damaged)}; remove them and sweep again")
    return ClusterSweep(plan.folder, plan.cells, counted["run"], counted["kept"], rows, tuple(left))


def _result(ray: Any, one: Any, plan: Plan, part: int) -> tuple[str, Any]:
    try:
        what, result = ray.get(one)
    except ray.exceptions.RayError as error:
        numbers = plan.numbers(part)
        why = str(error).strip().splitlines()
        raise RunError(
            f"cells {numbers[0]} to {numbers[-1]}: {why[-1] if why else type(error).__name__} (is this build of unspin_lab on every"
            f" node? A worker that dies is replaced {RETRIES} times)"
        ) from None
    if what == "refused":
        raise result
    return what, result
