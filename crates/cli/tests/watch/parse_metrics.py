# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads metrics from standard input by the parsers of PyPI's prometheus_client, and prints the samples as JSON. Fails where they are
not valid. Usage: parse_metrics.py openmetrics|text"""

import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text

PARSERS = {
    "openmetrics": openmetrics.text_string_to_metric_families,
    "text": text.text_string_to_metric_families,
}


def main() -> None:
    families = list(PARSERS[sys.argv[1]](sys.stdin.read()))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a family is there twice"
    samples = [
        {"name": sample.name, "labels": sample.labels, "value": sample.value}
        for family in families
        for sample in family.samples
    ]
    assert all(family.documentation for family in families), "a family without help"
    series = [(sample["name"], tuple(sorted(sample["labels"].items()))) for sample in samples]
    assert len(series) == len(set(series)), "a series is there twice"
    json.dump(samples, sys.stdout)


main()
