# SPDX-License-Identifier: MIT OR Apache-2.0
"""The exceptions of this package. Ctrl-C raises ``KeyboardInterrupt``, as everywhere."""

__all__ = ["Error", "RunError", "ScenarioError", "UsageError"]


class Error(Exception):
    """What all exceptions of this package are."""


class ScenarioError(Error, ValueError):
    """A scenario, or a setting of one, is refused. Nothing has run.

    >>> import unspin_lab
    >>> try:
    ...     unspin_lab.check({"duration": "1s", "vm": [{"vcpus": 65, "lock": "ticket", "hold": "1us"}]})
    ... except unspin_lab.ScenarioError as error:
    ...     print(error.key)
    ...     print(error.allowed)
    vm.0.vcpus
    expected a whole number from 1 to 64
    """

    #: The key, as settings write it: ``vm.0.vcpus`` is ``vcpus`` of the first group. Empty: the scenario as a whole.
    key: str = ""
    #: The file in which it stands, or ``"scenario"`` for a text.
    file: str | None = None
    #: Line in that file, from 1.
    line: int | None = None
    #: Column in that line, from 1.
    column: int | None = None
    #: What is allowed there, where there is something to say.
    allowed: str | None = None


class UsageError(Error, ValueError):
    """An argument cannot be: an unknown policy, a range without values, a folder of another sweep. Nothing has run."""


class RunError(Error, RuntimeError):
    """A run ended before its time: the model makes no progress, a file cannot be written."""
