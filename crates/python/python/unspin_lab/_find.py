# SPDX-License-Identifier: MIT OR Apache-2.0
"""Where a policy harms: a search over a space of scenarios, and each finding verified from new seeds.

optuna chooses the points (TPE, in order and from a seed: the same call finds the same). What is simulated is ``compare``.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from . import _given, _native
from ._results import Finding, Findings
from .errors import RunError, ScenarioError, UsageError

#: From the scenario's seed to those of the verification: no search uses them.
NEW_SEEDS = 500_000
#: Points that are verified for each one that is kept at most: a low ratio of few seeds may be chance.
VERIFIED_EACH = 2
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
    """Values by key. Those of a key that are numbers, with or without a unit, have an order; names have none."""

    def __init__(self, space: Mapping[str, Any]) -> None:
        axes = _given.axes(space)
        if not axes:
            raise UsageError("the space has no keys: give each its values, as in {'vm.vcpus': '2..8'}")
        self.values = {key: _native.axis_values(key, values) for key, values in axes}

    def points(self) -> int:
        """How many points it has."""
        number = 1
        for values in self.values.values():
            number *= len(values)
        return number

    def choose(self, trial: Any) -> Point:
        """The point of that trial of optuna's."""
        return {key: self._choose(trial, key, values) for key, values in self.values.items()}

    def _choose(self, trial: Any, key: str, values: list[str]) -> str:
        if all(re.search(r"\d", value) for value in values) and len(values) > 2:
            return values[trial.suggest_int(key, 0, len(values) - 1)]
        chosen: str = trial.suggest_categorical(key, values)
        return chosen


class Search:
    """Comparisons of one policy with the scenario as it is."""

    def __init__(self, source: _native.Source, settings: list[str], policy: str, workers: int | None) -> None:
        self.source, self.settings, self.policy, self.workers = source, settings, policy, workers
        self.seed = int(re.findall(r"^seed = (\d+)$", source.check(settings), re.MULTILINE)[0])

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
    policy: str,
    space: Mapping[str, Any],
    *,
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
    optuna, of = _optuna(), Space(space)
    search = Search(source, settings, policy, workers)
    study = optuna.create_study(direction="minimize", sampler=optuna.samplers.TPESampler(seed=search_seed, multivariate=True))
    seen: dict[tuple[str, ...], float | None] = {}
    refused = 0
    steps = trials + VERIFIED_EACH * keep
    for step in range(trials):
        trial = study.ask()
        point = of.choose(trial)
        key = tuple(point.values())
        if key not in seen:
            try:
                seen[key] = _ratio(search.compare(point, seeds, 0))
            except ScenarioError:
                # Values that do not go together; if none does, the last one is told below.
                seen[key] = None
                refused += 1
                if refused == trials or len(seen) == of.points() and refused == len(seen):
                    raise
        value = seen[key]
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
        if progress is not None:
            progress(step + 1, steps)
    below = [(value, key) for key, value in seen.items() if value is not None and value < 1]
    worst = [dict(zip(of.values, key, strict=True)) for _, key in sorted(below)[: VERIFIED_EACH * keep]]
    findings = []
    for step, point in enumerate(worst):
        row = search.compare(point, verify_seeds, NEW_SEEDS)
        ratio, high = _ratio(row), row["throughput_ratio_to_stock_high"]
        if ratio is not None and (ratio == STUCK or (high is not None and high < 1)):
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


def _write(out: Path, search: Search, policy: str, findings: list[Finding], verify_seeds: int) -> None:
    """A scenario for each finding, the worst first; the folder is new or empty."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in out.iterdir())
        if there:
            raise UsageError(f"{out} is not empty ({there[0]}): take a new or an empty folder")
        for number, finding in enumerate(findings, 1):
            first = search.seed + NEW_SEEDS
            head = (
                f"# Found by `lab find`: under {policy} this scenario does {finding.ratio:.3f} of what it does without\n"
                f"# (95 % interval {_interval(finding)}; seeds {first} to {first + verify_seeds - 1}; unspin {_native.COMMIT}).\n"
                f"# unspin lab compare {number:02}.toml --policy {policy}\n"
            )
            (out / f"{number:02}.toml").write_text(head + finding.scenario)
    except OSError as error:
        raise RunError(f"{out}: {error.strerror or error}") from None


def _interval(finding: Finding) -> str:
    if finding.ratio_low is None or finding.ratio_high is None:
        return "unknown: nothing was done under it"
    return f"{finding.ratio_low:.3f} to {finding.ratio_high:.3f}"
