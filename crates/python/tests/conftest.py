# SPDX-License-Identifier: MIT OR Apache-2.0
"""What several tests need."""

import json
import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]

#: Two overcommitted VMs whose times are drawn, for some 20 ms of work.
SCENARIO = """\
name = "two"
seed = 5
duration = "30ms"
warm_up = "5ms"

[host]
cpus = 2
ple_window = 200

[[vm]]
count = 2
vcpus = 2
lock = "ticket"
hold = { exponential = "2us" }
user_work = { exponential = "9us" }
pv_page = true
"""

#: A simulated hour: nobody waits for its end.
LONG = {
    "duration": "3600s",
    "vm": [{"count": 4, "vcpus": 4, "lock": "ticket", "hold": {"exponential": "2us"}, "user_work": {"exponential": "9us"}}],
}


@pytest.fixture
def scenario(tmp_path):
    """A scenario file."""
    path = tmp_path / "two.toml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def unspin():
    """The rows that a command of ``unspin`` prints with ``--json``, by table."""
    binary = os.environ.get("UNSPIN", REPOSITORY / "unspin")

    def rows(*words):
        command = [str(word) for word in (binary, *words, "--json")]
        printed = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        by_table = {}
        for row in printed["rows"]:
            by_table.setdefault(row.pop("table"), []).append(row)
        return printed["commit"], by_table

    return rows
