# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios as files, texts, mappings and dataclasses; what is refused names its key."""

import dataclasses
import tomllib

import numpy
import pytest

import unspin_lab
from conftest import SCENARIO
from unspin_lab import Host, LabSettings, Scenario, ScenarioError, UsageError, Vm

VM = {"vcpus": 2, "lock": "ticket", "hold": "1us"}


def test_every_form_is_the_same_scenario(scenario):
    text = unspin_lab.check(SCENARIO)
    assert unspin_lab.check(scenario) == text
    assert unspin_lab.check(str(scenario)) == text
    assert unspin_lab.check(tomllib.loads(SCENARIO)) == text
    work = {"hold": {"exponential": "2us"}, "user_work": {"exponential": "9us"}}
    vm = Vm(count=2, vcpus=2, lock="ticket", pv_page=True, **work)
    given = Scenario(name="two", seed=5, duration="30ms", warm_up="5ms", host=Host(cpus=2, ple_window=200), vm=[vm])
    assert unspin_lab.check(given) == text

    @dataclasses.dataclass
    class Mine:
        iterations: int
        vm: tuple[dict, ...]
        name: str | None = None

    assert unspin_lab.check(Mine(iterations=3, vm=(VM,))) == unspin_lab.check({"iterations": 3, "vm": [VM]})
    # The canonical text is a scenario again.
    assert unspin_lab.check(text) == text


def test_numbers_of_numpy_are_numbers():
    given = {"iterations": numpy.int64(3), "vm": [VM | {"vcpus": numpy.uint8(2), "pv_page": numpy.bool_(False)}]}
    assert unspin_lab.check(given) == unspin_lab.check({"iterations": 3, "vm": [VM]})


def test_settings_win_in_order(tmp_path):
    costs = tmp_path / "costs.toml"
    costs.write_text("exit_ns = 777\n")
    ran = unspin_lab.run(SCENARIO, seed=9, duration="10ms", set={"seed": 11, "vm.0.lock": "mcs"}, costs=costs)
    assert (ran.run["seed"], ran.vms["lock"]) == ([11], ["mcs", "mcs"])
    assert "exit_ns = 777" in ran.scenario
    assert unspin_lab.costs(SCENARIO, set={"lab.costs.exit_ns": 5})["exit_ns"] == 5
    given = unspin_lab.run(SCENARIO, set=["duration=10ms"], costs={"exit_ns": 777})
    assert "exit_ns = 777" in given.scenario
    ran = unspin_lab.run(SCENARIO, duration="10ms", policy="loan,slice=2ms")
    assert 'policy = "loan,slice=2ms"' in ran.scenario


def refused(scenario, **settings):
    with pytest.raises(ScenarioError) as caught:
        unspin_lab.run(scenario, **settings)
    return caught.value


def test_the_key_of_what_is_refused(scenario):
    def of_vm(**changed):
        return refused({"duration": "1s", "vm": [VM, VM | changed]}).key

    assert of_vm(vcpus=65) == "vm.1.vcpus"
    assert of_vm(vcpu=1) == "vm.1.vcpu"
    assert of_vm(hold={"uniform": ["5us", "4us"]}) == "vm.1.hold.uniform.1"
    assert of_vm(hold=object()) == "vm.1.hold"
    assert of_vm(hold=[1.5, {3: 4}]) == "vm.1.hold.1"
    assert refused({"duration": "1s", "vm": [{"vcpus": 2, "lock": "mcs"}]}).key == "vm.0.hold"
    assert refused({"vm": [VM]}).key == ""
    assert refused(SCENARIO, set={"vm.vcpu": 3}).key == "vm.vcpu"
    assert refused(SCENARIO, set={"vm.vcpus": "3"}).key == "vm.0.vcpus"
    assert refused(SCENARIO, set={"lab.candidates": "strikt"}).key == "lab.candidates"
    assert refused(SCENARIO, set={"lab.scheduler": "steer", "lab.policy": "./missing.c"}).key == "lab.policy"
    assert refused(SCENARIO, costs={"exit_ns": 0}).key == "lab.costs.exit_ns"
    given = Scenario(duration="1s", vm=[Vm(**VM)], lab=LabSettings(topology="1x1x0x1"))
    assert refused(given).key == "lab.topology"
    with pytest.raises(ScenarioError) as caught:
        unspin_lab.sweep(scenario, {"vm.vcpu": [1, 2]})
    assert caught.value.key == "vm.vcpu"


def test_places_are_those_of_the_users_text(scenario):
    scenario.write_text(SCENARIO.replace("vcpus = 2", "vcpus = 65"))
    error = refused(scenario)
    assert (error.file, error.line, error.column) == (str(scenario), 12, 9)
    assert error.allowed == "expected a whole number from 1 to 64"
    assert str(error).startswith(f"{scenario}:12:9: `vcpus` cannot be 65; expected")
    given = refused({"duration": "1s", "vm": [VM | {"vcpus": 65}]})
    assert (given.file, given.line) == (None, None)
    assert str(given) == "vm.0.vcpus: `vcpus` cannot be 65; expected a whole number from 1 to 64"
    assert refused("duration =\n").line == 1
    assert "cannot be read" in str(refused("missing.toml"))
    assert isinstance(error, ValueError) and isinstance(error, unspin_lab.Error)


def test_arguments_that_cannot_be(scenario, tmp_path):
    with pytest.raises(UsageError, match="there is no policy `lone`"):
        unspin_lab.compare(scenario, ["lone"])
    with pytest.raises(TypeError, match="is a list"):
        unspin_lab.compare(scenario, "loan")
    with pytest.raises(UsageError, match="seeds cannot be 0"):
        unspin_lab.compare(scenario, ["loan"], seeds=0)
    with pytest.raises(UsageError, match="no value"):
        unspin_lab.sweep(scenario, {"vm.vcpus": []})
    with pytest.raises(UsageError, match="the value 2 stands there twice"):
        unspin_lab.sweep(scenario, {"vm.vcpus": [2, 2]})
    with pytest.raises(UsageError, match="its values are a list"):
        unspin_lab.sweep(scenario, {"vm.vcpus": 2})
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "else").write_text("")
    with pytest.raises(UsageError, match="name another folder"):
        unspin_lab.sweep(scenario, {}, out=tmp_path / "out")
    with pytest.raises(TypeError, match="not int"):
        unspin_lab.run(3)
    with pytest.raises(TypeError, match="not one text"):
        unspin_lab.run(scenario, set="vm.vcpus=3")
