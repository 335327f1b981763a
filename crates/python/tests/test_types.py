# SPDX-License-Identifier: MIT OR Apache-2.0
"""What type checkers read is what is there."""

import ast
import inspect
from importlib import resources

import unspin_lab
from unspin_lab import _native

STUB = ast.parse((resources.files(unspin_lab) / "_native.pyi").read_text())


def parameters(function):
    arguments = function.args
    return [argument.arg for argument in arguments.posonlyargs + arguments.args if argument.arg != "self"]


def of_object(thing):
    return [name for name in inspect.signature(thing).parameters if name != "self"]


def test_the_stub_has_all_functions_with_their_parameters():
    functions = {node.name: parameters(node) for node in STUB.body if isinstance(node, ast.FunctionDef)}
    there = {name for name, value in vars(_native).items() if inspect.isbuiltin(value)}
    assert set(functions) == there
    for name, expected in functions.items():
        assert of_object(getattr(_native, name)) == expected, name


def test_the_stub_has_all_classes_with_their_methods():
    classes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    assert set(classes) == {name for name, value in vars(_native).items() if inspect.isclass(value)}
    for name, node in classes.items():
        there = vars(getattr(_native, name))
        # What every object has needs no word.
        own = {key for key in there if key not in vars(object) and key not in {"__module__", "__doc__"}}
        assert {one.name for one in node.body if isinstance(one, ast.FunctionDef)} == own, name
        for one in node.body:
            if isinstance(one, ast.FunctionDef) and callable(there[one.name]) and not one.name.startswith("__"):
                assert of_object(there[one.name]) == parameters(one), (name, one.name)


def test_the_package_says_that_it_has_types():
    assert (resources.files(unspin_lab) / "py.typed").is_file()
    assert unspin_lab.__version__
    for name in unspin_lab.__all__:
        assert getattr(unspin_lab, name).__doc__, name
