# SPDX-License-Identifier: MIT OR Apache-2.0
"""What arguments may be, and what the native module gets of them."""

import dataclasses
import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from . import _native
from .errors import ScenarioError, UsageError

#: A scenario: a path, a text in TOML, a mapping with the keys of a scenario file, or a dataclass with such fields
#: (``unspin_lab.Scenario``). A ``str`` with a line break is a text; any other ``str`` is a path.
ScenarioLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Any
#: Values by key, as in ``{"vm.vcpus": 4, "vm.0.lock": "mcs"}``, or words as ``--set`` takes them: ``["vm.vcpus=4"]``.
Settings: TypeAlias = Mapping[str, Any] | Sequence[str]
#: Costs by name, or a file that ``unspin lab calibrate --out`` wrote.
Costs: TypeAlias = Mapping[str, int] | str | os.PathLike[str]
#: The axes of a sweep: each key with its values, as a setting has them, or with one text that stands for several.
Axes: TypeAlias = list[tuple[str, list[str]] | tuple[str, str]]


def plain(value: Any, key: str) -> Any:
    """The value in JSON's types. What is ``None`` in a mapping or a dataclass is absent. ``key``: where it stands."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise _refused(key, f"a key is text, not {name!r}")
        given = ((name, item) for name, item in value.items() if item is not None)
        return {name: plain(item, f"{key}.{name}" if key else name) for name, item in given}
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        # A number of NumPy.
        value = value.item()
    if isinstance(value, bool | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [plain(item, f"{key}.{place}") for place, item in enumerate(value)]
    try:
        return operator.index(value)
    except TypeError:
        raise _refused(key, f"a {type(value).__name__} is no value of a scenario") from None


def _refused(key: str, why: str) -> ScenarioError:
    error = ScenarioError(f"{key}: {why}" if key else why)
    error.key = key
    return error


def source(scenario: ScenarioLike) -> _native.Source:
    """The text of a scenario, however it is given."""
    if isinstance(scenario, str) and "\n" in scenario:
        return _native.Source.toml(scenario)
    if isinstance(scenario, str | os.PathLike):
        return _native.Source.read(os.fspath(scenario))
    if isinstance(scenario, Mapping) or dataclasses.is_dataclass(scenario) and not isinstance(scenario, type):
        return _native.Source.json(json.dumps(plain(scenario, "")))
    raise TypeError(f"a scenario is a path, a TOML text, a mapping or a dataclass, not {type(scenario).__name__}")


def word(value: Any, key: str) -> str:
    """A value as a setting of that key has it."""
    return _native.toml_word(json.dumps(plain(value, key)))


def settings(
    set: Settings | None,
    *,
    seed: int | None = None,
    duration: str | None = None,
    costs: Costs | None = None,
    policy: str | None = None,
) -> list[str]:
    """All settings in the order in which a later one wins: costs, seed, duration, set, policy."""
    words: list[str] = []
    if isinstance(costs, Mapping):
        words += [f"lab.costs.{name}={word(cost, f'lab.costs.{name}')}" for name, cost in costs.items()]
    elif costs is not None:
        words += _native.cost_file(os.fspath(costs))
    if seed is not None:
        words.append(f"seed={word(seed, 'seed')}")
    if duration is not None:
        words.append(f"duration={word(duration, 'duration')}")
    if isinstance(set, Mapping):
        words += [f"{key}={word(value, key)}" for key, value in set.items()]
    elif isinstance(set, str):
        raise TypeError("set is a mapping or a list of words, not one text")
    elif set is not None:
        words += set
    if policy is not None:
        words += _native.change_of(policy)
    return words


def axes(grid: Mapping[str, Any]) -> Axes:
    """The axes of a sweep, in order: each key with its values, or with one text as ``lab sweep --set`` takes it."""
    if not isinstance(grid, Mapping):
        raise TypeError(f"a grid is a mapping of keys to their values, not {type(grid).__name__}")
    found: Axes = []
    for key, values in grid.items():
        if isinstance(values, str):
            found.append((key, values))
        elif isinstance(values, Iterable) and not isinstance(values, Mapping):
            found.append((key, [word(value, key) for value in values]))
        else:
            raise UsageError(f"grid, {key}: its values are a list, or a text as in '1..8'; not {values!r}")
    return found
