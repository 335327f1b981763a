# SPDX-License-Identifier: MIT OR Apache-2.0
"""What ``unspin lab sweep --ray`` and ``unspin lab find`` call: the plan as JSON on standard input, a JSON object a line on standard output.

The plan and the lines are those of ``crates/experiment/src/in_python``.
"""

import json
import signal
import sys
from pathlib import Path
from typing import Any

from . import _cluster, _find, _native
from ._given import Axes
from .errors import Error, RunError, UsageError


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def sweep(source: _native.Source, settings: list[str], axes: Axes, given: dict[str, Any]) -> dict[str, Any]:
    swept = _cluster.sweep(source, settings, axes, part_cells=None, progress=lambda done, _: say(done=done), **given)
    return {"folder": swept.folder, "run": swept.run, "kept": swept.kept, "rows": swept.rows, "left": swept.left}


def find(source: _native.Source, settings: list[str], axes: Axes, given: dict[str, Any]) -> dict[str, Any]:
    out = None if given["out"] is None else Path(given["out"])
    progress = {"progress": lambda done, _: say(done=done)}
    found = _find.find(source, settings, axes=axes, **{**given, **progress, "out": out})
    search = {
        "policy": found.policy,
        "points": found.points,
        "simulated": found.simulated,
        "refused": found.refused,
        "verified": found.verified,
        "found": len(found.findings),
    }
    return {"search": search, "findings": [row(number, finding, out) for number, finding in enumerate(found.findings, 1)]}


def row(number: int, finding: _find.Finding, out: Path | None) -> dict[str, Any]:
    return {
        "throughput_ratio_to_stock": finding.ratio,
        "throughput_ratio_to_stock_low": finding.ratio_low,
        "throughput_ratio_to_stock_high": finding.ratio_high,
        "worst_vm_ratio": finding.worst_vm_ratio,
        "lab_error": finding.lab_error,
        "lab_error_unknown": finding.lab_error_unknown,
        "set": " ".join(f"{key}={value}" for key, value in finding.set.items()),
        "file": None if out is None else str(_find.file_of(out, number)),
    }


def main() -> None:
    # A terminal sends Ctrl-C to us, and the caller does: the first one counts.
    signal.signal(signal.SIGINT, _interrupt)
    plan = json.load(sys.stdin)
    try:
        if plan["commit"] != _native.COMMIT:
            raise UsageError(f"unspin is build {plan['commit']}, this Python's unspin_lab {_native.COMMIT}: install both of one build")
        varied = plan["varied"]
        axes = [(key, values) for key, values in varied["axes"]]
        function = {"sweep": sweep, "find": find}[plan["function"]]
        result = function(_native.Source.of_parts(*varied["source"]), varied["settings"], axes, plan["arguments"])
    except RunError as error:
        say(failed=str(error))
    except Error as error:
        say(usage=str(error))
    except KeyboardInterrupt:
        say(failed="interrupted")
    else:
        say(result=result)


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
