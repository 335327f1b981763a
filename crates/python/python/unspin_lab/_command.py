# SPDX-License-Identifier: MIT OR Apache-2.0
"""What ``unspin lab sweep --ray`` calls: the plan as JSON on standard input, a JSON object a line on standard output.

The lines are those of ``crates/experiment/src/sweep/cluster.rs``.
"""

import json
import signal
import sys

from . import _cluster, _native
from .errors import Error, RunError, UsageError


def say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def main() -> None:
    # A terminal sends Ctrl-C to us, and the caller does: the first one counts.
    signal.signal(signal.SIGINT, _interrupt)
    plan = json.load(sys.stdin)
    try:
        if plan["commit"] != _native.COMMIT:
            raise UsageError(f"unspin is build {plan['commit']}, this Python's unspin_lab {_native.COMMIT}: install both of one build")
        swept = _cluster.sweep(
            _native.Source.of_parts(*plan["source"]),
            plan["settings"],
            [(key, values) for key, values in plan["axes"]],
            plan["seeds"],
            address=plan["address"],
            out=plan["out"],
            part_cells=None,
            progress=lambda done, _: say(done=done),
        )
    except RunError as error:
        say(failed=str(error))
    except Error as error:
        say(usage=str(error))
    except KeyboardInterrupt:
        say(failed="interrupted")
    else:
        say(result={"folder": swept.folder, "run": swept.run, "kept": swept.kept, "rows": swept.rows, "left": swept.left})


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
