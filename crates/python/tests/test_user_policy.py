# SPDX-License-Identifier: MIT OR Apache-2.0
"""A policy in C steers from Python, too."""

import pytest

import unspin_lab
from conftest import SCENARIO

FUNCTION = """\
UNSPIN_PURE struct unspin_decision mine_{moment}(const struct unspin_facts *facts, struct unspin_policy_state *state)
{{
        return unspin_decide({answer}, 0);
}}
"""


@pytest.fixture
def write(tmp_path):
    """Writes a policy that always answers the same."""

    def write(answer):
        moments = ("on_yield", "on_slice_end", "on_poll")
        functions = "".join(FUNCTION.format(moment=moment, answer=answer) for moment in moments)
        start = (
            "UNSPIN_PURE void mine_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)\n{\n}\n"
        )
        path = tmp_path / "mine.c"
        path.write_text(f"#include <unspin/policy/contract.h>\n{functions}{start}")
        return path

    return write


def operations(compared, policy):
    rows = compared.samples.to_pylist()
    return [row["operations_per_second"] for row in rows if row["policy"] == policy]


def test_it_decides(write):
    path = write("UNSPIN_REFUSE")
    both = f"{path},directed-yield"
    compared = unspin_lab.compare(SCENARIO, ["refuse-yields", "directed-yield", path, both], seeds=2)
    assert operations(compared, str(path)) == operations(compared, "refuse-yields")
    assert operations(compared, both) == operations(compared, "refuse-yields")
    # The same file, changed: it is read anew.
    compared = unspin_lab.compare(SCENARIO, ["refuse-yields", write("UNSPIN_PASS")], seeds=2)
    assert operations(compared, str(path)) != operations(compared, "refuse-yields")
    run = unspin_lab.run(SCENARIO, policy=str(path))
    assert run.run["scheduler"] == ["steer"]
    swept = unspin_lab.sweep(SCENARIO, {"vm.vcpus": [2, 3]}, policy=f"{path},loan")
    assert len(swept.cells) == 2


def test_what_does_not_compile_is_shown(write, tmp_path):
    path = write("no_such_answer")
    with pytest.raises(unspin_lab.ScenarioError, match="no_such_answer") as caught:
        unspin_lab.compare(SCENARIO, [path])
    assert caught.value.key == "lab.policy"
    with pytest.raises(unspin_lab.UsageError, match="takes such files"):
        unspin_lab.sweep(SCENARIO, {"seed": [1, 2]}, policy=str(path), out=tmp_path / "out")
