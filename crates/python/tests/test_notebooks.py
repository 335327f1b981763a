# SPDX-License-Identifier: MIT OR Apache-2.0
"""Every notebook runs from its first cell to its last, and none is kept with what it printed."""

import json
from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_is_one():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kept = [cell for cell in json.loads(path.read_text())["cells"] if cell.get("outputs") or cell.get("execution_count")]
    assert not kept, "clear the outputs before the notebook is committed"
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "no plot was drawn"
