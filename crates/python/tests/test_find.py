# SPDX-License-Identifier: MIT OR Apache-2.0
"""Searches for scenarios in which a policy harms."""

import sys

import pytest

import unspin_lab

#: Silent guests on two CPUs. Where they send shootdowns, `directed-yield` is known to harm (docs/known-issues.md).
SCENARIO = """\
name = "silent"
duration = "120ms"
warm_up = "20ms"

[host]
cpus = 2
ple_window = 200
ple_gap = 65535
ple_window_fixed = true

[[vm]]
count = 2
vcpus = 4
lock = "ticket"
user_work = { exponential = "10000 loops" }
hold = { exponential = "100 loops" }
"""
SPACE = {
    "vm.shootdown_every_iterations": [0, 20],
    "vm.lock": ["ticket", "test_and_set"],
    "vm.vcpus": "2..5",
    "vm.count": [1, 2],
}
GIVEN = {"trials": 16, "seeds": 2, "verify_seeds": 4, "keep": 3}


def test_a_known_harm_is_found_and_can_be_repeated(tmp_path):
    steps = []
    out = tmp_path / "found"
    found = unspin_lab.find(
        SCENARIO, "directed-yield", SPACE, **GIVEN, out=out, progress=lambda done, all: steps.append((done, all))
    )
    assert (found.points, found.simulated, found.refused) == (32, 16, 0)
    assert steps[-1] == (22, 22) and steps == sorted(steps)
    worst = found.findings[0]
    assert worst.ratio_low < worst.ratio < worst.ratio_high < 1
    assert worst.set["vm.shootdown_every_iterations"] == "20" and "silent" in worst.scenario
    assert [finding.ratio for finding in found.findings] == sorted(finding.ratio for finding in found.findings)
    assert sorted(path.name for path in out.iterdir()) == [f"{at:02}.toml" for at in range(1, len(found.findings) + 1)]
    # From its file and the seeds that its head names, the very ratio.
    again = unspin_lab.compare(out / "01.toml", ["directed-yield"], seeds=4, seed=500_001).policies.to_pylist()[1]
    assert again["throughput_ratio_to_stock"] == worst.ratio
    # No two of them differ in one key alone.
    for one in found.findings:
        for other in found.findings:
            assert one is other or sum(one.set[key] != other.set[key] for key in SPACE) > 1
    assert str(found).startswith("directed-yield: 16 of 32 points simulated")


def test_the_same_search_finds_the_same():
    def find(**given):
        return unspin_lab.find(SCENARIO, "directed-yield", SPACE, **{**GIVEN, "trials": 8}, **given)

    assert find(workers=1) == find(workers=2)
    assert find() != find(search_seed=2)


def test_all_of_a_small_space_and_nothing_to_be_found():
    # The scheduler that the scenario has: each ratio is 1.
    found = unspin_lab.find(SCENARIO, "eevdf-7.2", {"vm.vcpus": [2, 3], "vm.count": [1, 2]}, trials=100, seeds=2)
    assert (found.points, found.simulated, found.verified, found.findings) == (4, 4, 0, ())


def test_points_that_are_no_scenarios():
    found = unspin_lab.find(SCENARIO, "loan", {"duration": ["20ms", "90ms"], "warm_up": ["10ms", "50ms"]}, **GIVEN)
    assert (found.points, found.simulated, found.refused) == (4, 3, 1)
    # A value that goes with nothing, though others do.
    for space, why in [
        ({"vm.vcpus": [2, 65]}, "from 1 to 64"),
        ({"vm.vcpus": [2, 3], "vm.lock": ["ticket", "tickett"]}, "tickett"),
    ]:
        with pytest.raises(unspin_lab.ScenarioError, match=why):
            unspin_lab.find(SCENARIO, "loan", space, **GIVEN)


def test_bad_arguments(tmp_path):
    (tmp_path / "mine").write_text("")
    for given, why in [
        ({"out": tmp_path}, "is not empty"),
        ({"out": tmp_path / "mine" / "x"}, "mine"),
        ({"trials": 0}, "trials cannot be 0"),
    ]:
        with pytest.raises(unspin_lab.UsageError, match=why):
            unspin_lab.find(SCENARIO, "loan", {"vm.vcpus": [2, 3]}, **given)
    with pytest.raises(unspin_lab.UsageError, match="no keys"):
        unspin_lab.find(SCENARIO, "loan", {})
    with pytest.raises(unspin_lab.Error, match="lone"):
        unspin_lab.find(SCENARIO, "lone", {"vm.vcpus": [2, 3]})


def test_the_command(unspin, tmp_path, monkeypatch):
    monkeypatch.setenv("UNSPIN_PYTHON", sys.executable)
    file = tmp_path / "silent.toml"
    file.write_text(SCENARIO)
    words = [word for option, value in GIVEN.items() for word in (f"--{option.replace('_', '-')}", value)]
    words += [word for key in SPACE for word in ("--set", f"{key}={values_of(key)}")]
    _, printed = unspin("lab", "find", file, "--policy", "directed-yield", "--out", tmp_path / "found", *words)
    mine = unspin_lab.find(file, "directed-yield", SPACE, **GIVEN)
    search = printed["search"][0]
    assert (search["points"], search["simulated"], search["found"]) == (32, 16, len(mine.findings))
    assert [row["throughput_ratio_to_stock"] for row in printed["finding"]] == [of.ratio for of in mine.findings]
    assert printed["finding"][0]["file"] == str(tmp_path / "found" / "01.toml")


def values_of(key):
    values = SPACE[key]
    return values if isinstance(values, str) else ",".join(map(str, values))
