# SPDX-License-Identifier: MIT OR Apache-2.0
"""The dataclasses of scenarios follow from the schema: UNSPIN_WRITE_REFERENCE=1 writes them anew."""

import os
import textwrap
from pathlib import Path

import unspin_lab

FILE = Path(__file__).parents[1] / "python" / "unspin_lab" / "scenario.py"
HEAD = '''\
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Scenarios as dataclasses, for editors and type checkers. What is ``None`` is absent, and its default holds.

Written by tests/test_classes.py from the schema of scenarios.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

#: Work: ``"300 loops"``, ``"1us"``, ``{"exponential": "1us"}`` or ``{"uniform": ["1us", "3us"]}``.
Work: TypeAlias = str | Mapping[str, Any]
'''
#: In an order in which none is used before it is there.
CLASSES = ("Host", "NoiseSource", "NoiseRates", "LabSettings", "Vm", "Scenario")
PLAIN = {"string": "str", "integer": "int", "boolean": "bool"}


def resolved(schema, definitions):
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return name, definitions.get(name, schema)


def type_of(schema, definitions):
    """The annotation of a value."""
    name, schema = resolved(schema, definitions)
    if name in CLASSES:
        return name
    if "const" in schema:
        return f"Literal[{schema['const']!r}]".replace("'", '"')
    words = schema.get("enum") or [one.get("const") for one in schema.get("oneOf", [])]
    if words and None not in words:
        return "Literal[" + ", ".join(f'"{word}"' for word in words) + "]"
    variants = [one for one in schema.get("anyOf") or schema.get("oneOf") or [] if one.get("type") != "null"]
    if any(one.get("type") == "object" for one in variants):
        return "Work"
    if variants:
        return " | ".join(type_of(one, definitions) for one in variants)
    kind = schema.get("type")
    if kind == "array":
        return f"list[{type_of(schema['items'], definitions)}]"
    if kind == "object":
        return f"Mapping[str, {type_of(schema['additionalProperties'], definitions)}]"
    return PLAIN[kind]


def comment(schema):
    text = " ".join(schema.get("description", "").split())
    if title := schema.get("title"):
        text += f" {title[0].upper()}{title[1:]}."
    if "default" in schema:
        default = schema["default"]
        text += f" Default: {str(default).lower() if isinstance(default, bool) else default}."
    lines = textwrap.wrap(text, 118)
    return "".join(f"    #: {line}\n" for line in lines)


def class_text(name, table, definitions):
    required = table.get("required", [])
    fields = ""
    for key, schema in table["properties"].items():
        annotation = type_of(schema, definitions)
        if key not in required:
            annotation += " | None = None"
        line = f"    {key}: {annotation}\n"
        if len(line) > 121:
            head, words = annotation.split("[", 1)
            words, tail = words.rsplit("]", 1)
            inner = "".join(f"        {word.strip()},\n" for word in words.split(","))
            line = f"    {key}: {head}[\n{inner}    ]{tail}\n"
        fields += comment(schema) + line
    what = " ".join(table["description"].split())
    return f'\n\n@dataclass(kw_only=True)\nclass {name}:\n    """{what}"""\n\n{fields}'


def text():
    schema = unspin_lab.scenario_schema()
    definitions = schema["$defs"]
    tables = {name: definitions.get(name, schema) for name in CLASSES}
    return HEAD + "".join(class_text(name, table, definitions) for name, table in tables.items())


def test_the_dataclasses_are_those_of_the_schema():
    if os.environ.get("UNSPIN_WRITE_REFERENCE"):
        FILE.write_text(text())
    assert FILE.read_text() == text(), "write them anew: UNSPIN_WRITE_REFERENCE=1 setup/test-python -k dataclasses"
