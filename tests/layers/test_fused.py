"""Lines of tasks that Dask has fused: their names are made of those of several layers."""

from __future__ import annotations

import dask.array as da
import pytest

import stageprof
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.lines import Line, Lines
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import LINE, Place

TOKEN, OTHER = "0a" * 16, "0b" * 16


def noted(*made: tuple[str, int]) -> Lines:
    """Of names and the lines that made them; those without a token are prefixes."""
    store = Store()
    rows: list[Row] = [(LINE, name, "etl.py", line, int("-0" not in name)) for name, line in made]
    store.add(pack(Place("client", "host", 1, "Client-1", 1), 0, 1, rows))
    return Lines(store)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        (f"rechunk-split-rechunk-merge-{TOKEN}", 34),  # the layer's whole name is at its end
        (f"rechunk-merge-{TOKEN}", 34),
        (f"rechunk-split-{OTHER}", 58),  # no layer of this token was noted: as others of the name
        (f"filter-count-{OTHER}", 7),
        (f"rechunk-merge-rechunk-split-sum-{OTHER}", 9),  # what comes first comes by the alphabet
        (f"sum-partial-{OTHER}", 9),
        ("filter", 7),
        (f"mean-{TOKEN}", 0),
        (TOKEN, 0),
        ("", 0),
    ],
)
def test_the_line_is_that_of_the_layer_whose_token_it_has(name: str, line: int) -> None:
    made = ("rechunk-split", 58), ("rechunk-merge", 58), ("filter", 7), ("sum", 9)
    lines = noted((f"rechunk-merge-{TOKEN}", 34), *made)
    assert lines.of(name).line == line


def cut_twice() -> da.Array:
    """Two lines rechunk; parts of both are fused under names that begin alike."""
    first = da.ones((40, 40), chunks=(40, 40)).rechunk((20, 40))
    second: da.Array = (first + 1).rechunk((5, 40))
    return second


def test_cutting_up_in_another_line_is_not_taken_for_the_first_that_did() -> None:
    with stageprof.profile(gil=False) as prof:
        second = cut_twice()
        second.compute(scheduler="sync")
    own = second.name.rpartition("-")[2]
    names = {layer for layer in prof.recording.tasks()["layer"] if layer.endswith(own)}
    lines = Lines(prof.recording.store)
    assert names
    assert {lines.of(name) for name in names} == {
        Line(__file__, cut_twice.__code__.co_firstlineno + 3)
    }
