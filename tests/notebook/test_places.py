"""Whose line is whose in a notebook: a cell's is the user's, that of IPython is not."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest

from stageprof_runtime import assignment, cells
from stageprof_runtime.lines import LIBRARY, USER, _kinds, kind


@pytest.mark.parametrize("file", ["<ipython-input-3-0a1b>", "/tmp/ipykernel_41/2903.py"])
def test_cells_are_the_users(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the working folder is a package."""
    (tmp_path / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    _kinds.pop(file, None)
    assert kind(file) == USER


@pytest.mark.parametrize("name", ["IPython", "ipykernel", "traitlets"])
def test_what_carries_a_cell_is_not(name: str) -> None:
    package = pytest.importorskip(name)
    assert kind(package.__file__) == LIBRARY


def test_a_variable_of_an_earlier_cell_is_found_in_the_latest_that_assigns_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources = {"<one>": "x = 1\ntable = 2\n", "<two>": "\n\ntable = 3\n", "<three>": "y = 4\n"}
    for file, text in sources.items():
        monkeypatch.setitem(linecache.cache, file, (len(text), None, text.splitlines(True), file))
    monkeypatch.setattr(assignment, "numbers", lambda: dict(zip(sources, (1, 2, 3), strict=True)))

    assert assignment._place_in_cells("table") == ("<two>", 3)
    assert assignment._place_in_cells("x") == ("<one>", 1)
    assert assignment._place_in_cells("nowhere") == ("", 0)


def test_marks_name_a_cell_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "numbers", lambda: {"/tmp/ipykernel_4/a b.py": 12})
    assert cells.told() == ["12 /tmp/ipykernel_4/a b.py"]
