"""Where the many pieces of a collection come from, as `large-graph` says it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest

import stageprof
from findings.asking import one
from stageprof_collectors.account.exchange import squared
from stageprof_collectors.findings.crowd import Kind
from stageprof_collectors.findings.upstream import upstream
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.large_graph import RULE

pytestmark = pytest.mark.cluster


def cut() -> da.Array:
    """5 pieces, of which 200 are made."""
    x = da.random.default_rng(1).random((200, 64), chunks=(40, 64))
    small: da.Array = x.rechunk((1, 64))  # cut here
    total: da.Array = (small - small.mean()).sum()
    return total


def cut_further() -> da.Array:
    """120 pieces, of which 1,200 are made, as a `groupby` over time does."""
    x = da.random.default_rng(1).random((1200, 8), chunks=(10, 8))  # small ones
    small: da.Array = x.rechunk((1, 8))  # cut further
    total: da.Array = (small - small.mean()).sum()
    return total


def fused() -> da.Array:
    """As many, which are not kept."""
    x = da.random.default_rng(1).random((200, 64), chunks=(40, 64))
    total: da.Array = (x.rechunk((1, 64)) + 1).sum()
    return total


def sliced() -> da.Array:
    """5 pieces, of which each row is taken by itself."""
    x = da.random.default_rng(1).random((200, 64), chunks=(40, 64))
    rows = da.concatenate([x[i : i + 1] for i in range(200)])  # taken here
    total: da.Array = (rows - rows.mean()).sum()
    return total


def overlapping() -> da.Array:
    """64 pieces, of which each gives its neighbours four margins: as many whatever their size."""
    x = da.random.default_rng(1).random((320, 320), chunks=(40, 40))  # 64 of them
    smooth = x.map_overlap(lambda block: block + 1, depth=1, boundary="reflect")
    total: da.Array = smooth.sum()
    return total


def in_memory() -> da.Array:
    """The same of an array that is there, which has no tasks."""
    x = da.from_array(np.ones((320, 320)), chunks=(40, 40))
    smooth = x.map_overlap(lambda block: block + 1, depth=1, boundary="reflect")
    total: da.Array = smooth.sum()
    return total


def paired() -> da.Array:
    """64 pieces, of which each of four rows is multiplied with each of 16 of them: 1,024."""
    x = da.random.default_rng(1).random((64, 64), chunks=(16, 4))  # the factors
    total: da.Array = (x.T @ x).sum()  # the product
    return total


class Stored:
    """What Dask reads piece by piece, as it does from Zarr, HDF5 and netCDF."""

    shape, dtype, ndim = (200, 64), np.dtype("f8"), 2

    def __getitem__(self, index: Any) -> Any:
        return np.ones(self.shape)[index]


def stored() -> da.Array:
    """200 pieces of one store, which is no piece."""
    x = da.from_array(Stored(), chunks=(1, 64))  # opened here
    total: da.Array = (x - x.mean()).sum()
    return total


def image(number: int) -> Any:
    return np.full((8, 8), float(number))


read = dask.delayed(image)


def called() -> da.Array:
    """200 images, each of which a call of its own reads."""
    images = [da.from_delayed(read(i), (8, 8), float) for i in range(200)]  # read here
    stack = da.stack(images)
    total: da.Array = (stack - stack.mean()).sum()
    return total


def filtered() -> da.Array:
    """The same with margins, whose tasks are many more."""
    images = [da.from_delayed(read(i), (8, 8), float) for i in range(200)]  # of each one
    smooth = da.stack(images).map_overlap(lambda x: x, depth={1: 1, 2: 1}, boundary="reflect")
    total: da.Array = smooth.sum()
    return total


def windows() -> da.Array:
    """50 pieces of a store, cut for the windows of a rolling mean, which are many more tasks."""
    x = da.from_array(Stored(), chunks=(4, 64))  # opened for windows
    seen = da.lib.stride_tricks.sliding_window_view(x, 8, axis=0)
    total: da.Array = seen.mean(axis=-1).max()
    return total


def made() -> da.Array:
    """As many pieces from the beginning."""
    x = da.random.default_rng(1).random((200, 64), chunks=(1, 64))  # made here
    total: da.Array = (da.sin(x.persist()) + 1).sum()
    return total


def recorded(program: Callable[[], da.Array]) -> Recording:
    with stageprof.profile(gil=False) as prof:
        program().compute()
    return prof.recording


def line_of(program: Callable[[], da.Array], comment: str) -> int:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    first = program.__code__.co_firstlineno
    return next(i for i in range(first, len(lines)) if lines[i - 1].endswith(f"# {comment}"))


@pytest.mark.usefixtures("client")
def test_pieces_that_are_taken_from_larger_ones_are_not_to_be_read_larger() -> None:
    found = one(RULE, recorded(sliced), tasks=150)

    at = f"at test_upstream.py:{line_of(sliced, 'taken here')} makes 200 pieces of 5"
    assert at in found.fix.text
    assert "read or made" not in found.fix.text
    assert found.fix.code == ""
    assert found.saving_s[0] == 0.0


@pytest.mark.usefixtures("client")
def test_margins_of_overlapping_chunks_are_fewer_if_the_chunks_are_larger() -> None:
    found = one(RULE, recorded(overlapping), tasks=150)

    at = f"read or made, at test_upstream.py:{line_of(overlapping, '64 of them')}"
    assert at in found.fix.text
    assert found.evidence["piece_bytes"] == 40 * 40 * 8
    assert found.saving_s[0] > 0.5 * found.saving_s[1]


def test_where_blocks_are_made_is_found_on_a_local_scheduler_that_tells_no_sizes() -> None:
    """It was the line of `map_overlap`, which makes none."""
    with dask.config.set(scheduler="sync"):
        found = one(RULE, recorded(overlapping), tasks=150)

    at = f"read or made, at test_upstream.py:{line_of(overlapping, '64 of them')}"
    assert at in found.fix.text


def test_margins_of_an_array_in_memory_are_not_where_its_blocks_are_made() -> None:
    """What `from_array` makes of it has no tasks, and no line that is known."""
    with dask.config.set(scheduler="sync"):
        found = one(RULE, recorded(in_memory), tasks=150)

    assert "read or made: changing it later" in found.fix.text


@pytest.mark.parametrize(("program", "comment"), [(called, "read here"), (filtered, "of each one")])
@pytest.mark.usefixtures("client")
def test_pieces_that_a_call_gives_are_fewer_if_a_call_gives_several(
    program: Callable[[], da.Array], comment: str
) -> None:
    """It advised a size of chunks, which nothing there has."""
    found = one(RULE, recorded(program), tasks=150)

    at = f"`image` at test_upstream.py:{line_of(program, comment)} makes one of 512 B each time"
    assert at in found.fix.text
    printed: dict[str, Any] = {"inputs": list(range(20)), "image": lambda i: np.full((2, 2), i)}
    exec(found.fix.code, printed)
    parts = dask.compute(*printed["parts"], scheduler="sync")
    assert np.concatenate(parts)[:, 0, 0].tolist() == list(range(20))


@pytest.mark.filterwarnings("ignore:Increasing number of chunks")  # which is what it is about
@pytest.mark.usefixtures("client")
def test_pieces_of_a_product_are_fewer_if_those_of_its_factors_are_larger() -> None:
    """It said that larger ones before it do not help."""
    found = one(RULE, recorded(paired), tasks=150)

    at = f"read or made, at test_upstream.py:{line_of(paired, 'the factors')}"
    assert at in found.fix.text
    assert f"at test_upstream.py:{line_of(paired, 'the product')} makes one of" in found.fix.text
    assert "in place of 512 B" in found.fix.text


@pytest.mark.usefixtures("client")
def test_pieces_that_are_read_from_a_store_are_cut_where_it_is_opened() -> None:
    """The store was taken for the one piece that is cut."""
    found = one(RULE, recorded(stored), tasks=150)

    at = f"read or made, at test_upstream.py:{line_of(stored, 'opened here')}"
    assert at in found.fix.text
    printed: dict[str, Any] = {}
    with dask.config.set({"array.chunk-size": "128MiB"}):  # it is what it was, afterwards
        exec(found.fix.code, printed)
        assert da.from_array(Stored(), chunks=printed["chunks"]).npartitions < 60


@pytest.mark.usefixtures("client")
def test_pieces_that_are_cut_for_windows_are_fewer_if_fewer_are_opened() -> None:
    """A rechunk that cuts was taken for an exchange of all with all, and nothing was said."""
    with dask.config.set({"array.rechunk.method": "tasks"}):
        recording = recorded(windows)
    crowd = recording.crowds.of(Kind.CHUNKS)
    assert crowd is not None
    assert not squared(recording, crowd.rows)
    found = one(RULE, recording, tasks=150)

    at = f"read or made, at test_upstream.py:{line_of(windows, 'opened for windows')}"
    assert at in found.fix.text


@pytest.mark.usefixtures("client")
def test_where_the_user_cuts_a_larger_size_is_what_to_choose() -> None:
    """The code works in the call; and nothing has to be put together again."""
    found = one(RULE, recorded(cut), tasks=150)

    assert f"They are cut at test_upstream.py:{line_of(cut, 'cut here')}" in found.fix.text
    assert "read or made" not in found.fix.text
    assert found.saving_s[0] > 0.5 * found.saving_s[1]
    printed: dict[str, Any] = {}
    exec(found.fix.code, printed)
    assert da.ones((200, 64), chunks=(1, 64)).rechunk(printed["chunks"]).npartitions < 60


@pytest.mark.usefixtures("client")
def test_of_many_pieces_that_are_cut_further_the_line_that_made_them_is_named_too() -> None:
    """What cuts them may go by their size, and nothing at its line says how large they are."""
    found = one(RULE, recorded(cut_further), tasks=150)

    assert f"are cut at test_upstream.py:{line_of(cut_further, 'cut further')}" in found.fix.text
    at = f"read or made, at test_upstream.py:{line_of(cut_further, 'small ones')}"
    assert at in found.fix.text


@pytest.mark.usefixtures("client")
def test_where_cutting_was_fused_with_what_follows_nobody_knows_a_size() -> None:
    found = one(RULE, recorded(fused), tasks=150)

    assert "about 20 times as large" in found.fix.text
    assert found.fix.code == ""


def test_a_local_scheduler_tells_no_sizes_but_where_they_are_cut() -> None:
    with dask.config.set(scheduler="sync"):
        found = one(RULE, recorded(cut), tasks=150)

    assert f"They are cut at test_upstream.py:{line_of(cut, 'cut here')}" in found.fix.text
    assert "is not told" in found.fix.text
    assert found.fix.code == ""


@pytest.mark.usefixtures("client")
def test_pieces_that_are_made_are_named_with_the_line_that_makes_them() -> None:
    """Not with the one that has most tasks."""
    recording = recorded(made)
    crowd = recording.crowds.of(Kind.CHUNKS)
    assert crowd is not None
    row, before, *_ = upstream(recording, crowd.main)

    assert (row.line, before) == (line_of(made, "made here"), 0)
