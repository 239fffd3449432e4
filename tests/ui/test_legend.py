"""What the colours of tasks mean: one for each thing, each told from all others."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np

from findings.crowded import Program
from stageprof.app import written
from stageprof_collectors.recording import Recording
from stageprof_ui.columns.tables import legends
from stageprof_ui.palette import GIL_COLOURS, LAYER_COLOURS, OTHER_COLOUR
from stageprof_ui.store import Store
from ui.conftest import Watched


def recorded(*layers: tuple[str, int, float]) -> Recording:
    """A computation after the other, each of one layer: prefix, line, and ms of its task."""
    made = Program()
    for i, (prefix, line, ms) in enumerate(layers):
        name = f"{prefix}-{i:032x}"
        made.made(name, line)
        made.tasks([(name, 0)], work=ms)
    return made.recording()


def legend(recording: Recording, mode: str = "layer") -> dict[str, str]:
    """What each colour means, by what it means."""
    entries = dict(legends(Store(recording).tables))[mode]
    assert len({name for _, name in entries}) == len(entries)
    return {name: colour for colour, name in entries}


def test_a_line_that_is_computed_twice_has_one_colour() -> None:
    recording = recorded(("read-csv", 12, 30), ("mean", 18, 10), ("read-csv", 12, 20))
    assert list(legend(recording)) == ["read-csv", "mean", "no task"]
    first, _, again = (layer.group for layer in Store(recording).tables.layers[1:])
    assert first == again


def test_layers_of_one_prefix_that_several_lines_made_are_told_apart_by_the_line() -> None:
    found = legend(recorded(("sum", 15, 30), ("sum", 18, 20), ("mean", 18, 10)))
    assert list(found) == ["sum, etl.py:15", "sum, etl.py:18", "mean", "no task"]


def test_other_layers_are_listed_where_there_are_any() -> None:
    own = len(LAYER_COLOURS) - 1
    layers = [(f"f{chr(97 + i)}", 1 + i, 50 - i) for i in range(own + 1)]
    assert "other layers" not in legend(recorded(*layers[:own]))
    found = legend(recorded(*layers))
    assert found["other layers"] == LAYER_COLOURS[-1]
    assert len(found) == own + 2


def test_a_line_is_told_where_the_other_layer_of_the_prefix_is_among_the_others() -> None:
    own = len(LAYER_COLOURS) - 1
    layers = [(f"f{chr(97 + i)}", 1 + i, 50 - i) for i in range(own)]
    assert "fa, etl.py:1" in legend(recorded(*layers, ("fa", 99, 1)))


def test_no_colour_of_the_gil_means_two_things() -> None:
    found = legend(recorded(("sum", 15, 30)), "gil")
    assert sorted(found.values()) == sorted(GIL_COLOURS)
    assert found["unknown, or no task"] == OTHER_COLOUR


#: From linear sRGB.
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """A colour of sRGB in CIELAB, where distances are as they are seen; about 2 is the least."""
    rgb = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    light = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt(_XYZ @ light / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_colours_of_layers_are_seen_to_differ() -> None:
    pairs = combinations((*LAYER_COLOURS, OTHER_COLOUR), 2)
    assert [pair for pair in pairs if np.linalg.norm(lab(pair[0]) - lab(pair[1])) < 15] == []


def test_the_page_lists_each_thing_once(watched: Watched, tmp_path: Path) -> None:
    path = tmp_path / "twice.html"
    written(recorded(("sum", 15, 30), ("sum", 18, 20), ("sum", 15, 10)), path)
    page = watched.open(f"{path.as_uri()}#timeline")
    items = page.locator("[data-sp-legend=layer] li")
    items.first.wait_for()
    assert items.all_inner_texts() == ["sum, etl.py:15", "sum, etl.py:18", "no task"]
