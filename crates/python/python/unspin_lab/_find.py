# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a policy harms: a search over a space of scenarios, and each finding verified from new seeds.

optuna chooses the points (TPE, in order and from a seed: the same call finds the same). What is simulated is ``compare``.
"""

import operator
import random
import re
import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from . import _native
from ._given import Axes
from ._results import Finding, Findings
from .errors import RunError, ScenarioError, UsageError

#: From the scenario's seed to those of the verification: no search uses them.
NEW_SEEDS = 500_000
#: Points that are verified for each one that is kept at most: a low ratio of few seeds may be chance.
VERIFIED_EACH = 2
#: So often optuna may come back to points that it knows before one is drawn.
REPEATS_MAX = 20
#: So many points are drawn with a value, of which one at least must be a scenario: more than a few that do not go together.
DRAWN_EACH = 20
#: What a point counts whose vCPUs did nothing under the policy: as if it were this slow.
STUCK = 1e-3

#: What is compared: a change of the scenario's settings.
Point = dict[str, str]


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise UsageError(f"a search needs one more package ({error}): pip install 'unspin-lab[find]'") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Space:
    """Values by key, as the grid of ``sweep``. Those of a key that are numbers, with or without a unit, have an order; names have none."""

    def __init__(self, axes: Axes) -> None:
        if not axes:
            raise UsageError("the space has no keys: give each its values, as in {'vm.vcpus': '2..8'}")
        self.values = {key: _native.axis_values(key, values) for key, values in axes}

    def points(self) -> int:
        """How many points it has."""
        number = 1
        for values in self.values.values():
            number *= len(values)
        return number

    def ask(self, study: Any, seen: Collection[tuple[int, ...]], draw: random.Random) -> tuple[Any, tuple[int, ...]]:
        """The next trial of optuna's, and its place among the values of each key: one that was not seen yet, of which there is one.
        optuna likes to come back to the best; where it does nothing else, a point is drawn."""
        for _ in range(REPEATS_MAX):
            trial, place = self._ask(study)
            if place not in seen:
                return trial, place
            study.tell(trial, state=_pruned())
        while True:
            place = tuple(draw.randrange(len(values)) for values in self.values.values())
            if place not in seen:
                study.enqueue_trial(dict(zip(self.values, place, strict=True)))
                return self._ask(study)

    def _ask(self, study: Any) -> tuple[Any, tuple[int, ...]]:
        trial = study.ask()
        return trial, tuple(self._suggest(trial, key, values) for key, values in self.values.items())

    def _suggest(self, trial: Any, key: str, values: list[str]) -> int:
        numbers = all(re.search(r"\d", value) for value in values)
        place: int = (
            trial.suggest_int(key, 0, len(values) - 1)
            if numbers
            else trial.suggest_categorical(key, list(range(len(values))))
        )
        return place

    def point(self, place: tuple[int, ...]) -> Point:
        """What stands there."""
        return {key: values[at] for (key, values), at in zip(self.values.items(), place, strict=True)}


def _pruned() -> Any:
    import optuna

    return optuna.trial.TrialState.PRUNED


class Search:
    """Comparisons of one policy with the scenario as it is."""

    def __init__(self, source: _native.Source, settings: list[str], policy: str, workers: int | None) -> None:
        self.source, self.settings, self.policy, self.workers = source, settings, policy, workers
        self.seed = int(tomllib.loads(source.check(settings))["seed"])

    def compare(self, point: Point, seeds: int, offset: int) -> dict[str, Any]:
        """The policy's row of the comparison at that point."""
        words = [*self.settings, *(f"{key}={value}" for key, value in point.items()), f"seed={self.seed + offset}"]
        tables, _ = _native.compare(self.source, words, [self.policy], seeds, self.workers, None)
        rows: list[dict[str, Any]] = dict(tables)["policies"].to_pylist()
        return next(row for row in rows if row["policy"] not in ("stock", "ideal"))

    def scenario(self, point: Point) -> str:
        """The scenario of that point, in its canonical form."""
        return self.source.check([*self.settings, *(f"{key}={value}" for key, value in point.items())])


def _ratio(row: dict[str, Any]) -> float | None:
    """The policy to stock; nothing where stock itself did nothing."""
    if row["throughput_ratio_to_stock"] is not None:
        return float(row["throughput_ratio_to_stock"])
    return STUCK if row["operations_per_second"] == 0 else None


def find(
    source: _native.Source,
    settings: list[str],
    *,
    policy: str,
    axes: Axes,
    trials: int,
    seeds: int,
    verify_seeds: int,
    keep: int,
    search_seed: int,
    workers: int | None,
    out: Path | None,
    progress: Callable[[int, int], object] | None,
) -> Findings:
    """See ``unspin_lab.find``."""
    optuna, of = _optuna(), Space(axes)
    search = Search(source, settings, policy, workers)
    _refuse_useless(search, of, random.Random(search_seed))
    if out is not None:
        _take(out)
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=search_seed, multivariate=True))
    seen: dict[tuple[int, ...], float | None] = {}
    draw = random.Random(search_seed)
    trials = min(trials, of.points())
    refused = 0
    steps = trials + VERIFIED_EACH * keep
    while len(seen) < trials:
        trial, place = of.ask(study, seen, draw)
        try:
            seen[place] = value = _ratio(search.compare(of.point(place), seeds, 0))
        except ScenarioError:
            # Values that do not go together.
            seen[place] = value = None
            refused += 1
        if value is None:
            study.tell(trial, state=_pruned())
        else:
            study.tell(trial, value)
        if progress is not None:
            progress(len(seen), steps)
    below = [(value, place) for place, value in seen.items() if value is not None and value < 1]
    worst = [of.point(place) for place in _apart([place for _, place in sorted(below)])[: VERIFIED_EACH * keep]]
    findings = []
    for step, point in enumerate(worst):
        row = search.compare(point, verify_seeds, NEW_SEEDS)
        ratio, high = _ratio(row), row["throughput_ratio_to_stock_high"]
        stuck = ratio is not None and row["throughput_ratio_to_stock"] is None
        if ratio is not None and (stuck or (high is not None and high < 1)):
            findings.append(_finding(search, point, ratio, row))
        if progress is not None:
            progress(trials + step + 1, steps)
    if progress is not None:
        progress(steps, steps)
    findings.sort(key=lambda finding: finding.ratio)
    findings = findings[:keep]
    if out is not None:
        _write(out, search, policy, findings, verify_seeds)
    simulated = len(seen) - refused
    return Findings(policy, of.points(), simulated, refused, len(worst), tuple(findings))


def _refuse_useless(search: Search, of: Space, draw: random.Random) -> None:
    """Raises what a value is refused with that goes with nothing, such as a misspelled name, before time is spent on others."""
    for at, values in enumerate(of.values.values()):
        for number in range(len(values)):
            for drawn in range(DRAWN_EACH):
                place = [draw.randrange(len(others)) for others in of.values.values()]
                place[at] = number
                try:
                    search.scenario(of.point(tuple(place)))
                    break
                except ScenarioError:
                    if drawn == DRAWN_EACH - 1:
                        raise


def _apart(places: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those of which no two differ in the value of one key alone, the first ones kept: neighbours of the worst are one finding."""
    kept: list[tuple[int, ...]] = []
    for place in places:
        if len(place) < 3 or all(sum(map(operator.ne, place, other)) > 1 for other in kept):
            kept.append(place)
    return kept


def _finding(search: Search, point: Point, ratio: float, row: dict[str, Any]) -> Finding:
    return Finding(
        set=point,
        ratio=ratio,
        ratio_low=row["throughput_ratio_to_stock_low"],
        ratio_high=row["throughput_ratio_to_stock_high"],
        worst_vm_ratio=row["worst_vm_ratio"],
        lab_error=row["lab_error"],
        lab_error_unknown=row["lab_error_unknown"],
        scenario=search.scenario(point),
    )


def _take(out: Path) -> None:
    """Creates the folder, which is new or empty, before the search begins."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in out.iterdir())
    except OSError as error:
        raise UsageError(f"{out}: {error.strerror or error}") from None
    if there:
        raise UsageError(f"{out} is not empty ({there[0]}): take a new or an empty folder")


def _write(out: Path, search: Search, policy: str, findings: list[Finding], verify_seeds: int) -> None:
    """A scenario for each finding, the worst first."""
    first = search.seed + NEW_SEEDS
    for number, finding in enumerate(findings, 1):
        head = (
            f"# Found by `lab find`: under {policy} this scenario does {finding.ratio:.3f} of what it does without\n"
            f"# (95 % interval {_interval(finding)}; seeds {first} to {first + verify_seeds - 1}; unspin {_native.COMMIT}).\n"
            f"# unspin lab compare {file_of(Path(), number)} --policy {policy}\n"
        )
        try:
            file_of(out, number).write_text(head + finding.scenario)
        except OSError as error:
            raise RunError(f"{out}: {error.strerror or error}") from None


def file_of(out: Path, number: int) -> Path:
    """The scenario of the finding with that number, from 1."""
    return out / f"{number:02}.toml"


def _interval(finding: Finding) -> str:
    if finding.ratio_low is None or finding.ratio_high is None:
        return "unknown: nothing was done under it"
    return f"{finding.ratio_low:.3f} to {finding.ratio_high:.3f}"
