"""All who look at a recording share what was read of it and made of it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import panel as pn
import pytest
from panel.links import Callback

from stageprof_collectors.recording import Recording
from stageprof_ui.app import PAGES, prepare
from stageprof_ui.links import unlink
from stageprof_ui.shown import shown
from stageprof_ui.store import Store


@pytest.fixture(scope="module")
def store(generated: Callable[[int], Path]) -> Store:
    return Store(Recording.open(generated(10_000)))


def test_two_sessions_have_the_same_arrays(store: Store) -> None:
    """Models belong to one document, but not what they hold."""
    one, other = store.stock(served=True), store.stock(served=True)
    assert one.source is not other.source
    for name in ("start", "length", "run"):
        assert np.shares_memory(one.source.data[name][0], other.source.data[name][0])
    assert np.shares_memory(one.stories.data["keys"][0], other.stories.data["keys"][0])


def test_what_is_made_of_a_recording_is_made_once(store: Store) -> None:
    made = []

    def count(recording: Recording, *, by: int = 1) -> int:
        made.append(recording)
        return by

    assert [store.made(count), store.made(count), store.made(count, by=2)] == [1, 1, 2]
    assert made == [store.recording] * 2


def test_a_second_session_reads_nothing_anew(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of a recording are not asked for when the pages are made again."""
    for _, _, view in PAGES:
        shown(view, store, store.stock(served=True))
    asked: list[str] = []
    for name in ("layers", "workers", "tasks", "computations", "lines", "objects"):
        monkeypatch.setattr(Recording, name, lambda *_, name=name: asked.append(name))
    for _, _, view in PAGES:
        shown(view, store, store.stock(served=True))
    assert asked == []


def test_pages_that_are_only_prepared_leave_no_link(store: Store) -> None:
    """Once for each recording of a folder that is opened."""
    before = len(Callback.registry)
    for _ in range(2):
        prepare(store)
    for _ in range(3):
        gc.collect()
    assert len(Callback.registry) <= before


def test_what_a_page_links_goes_with_the_page(store: Store) -> None:
    """Links that lead to one another would keep each page of each session for ever."""
    models = []
    for _ in range(3):
        views = [view(store, store.stock(served=True)) for _, _, view in PAGES]
        models += [
            weakref.ref(each) for view in views for each in view.select(pn.widgets.Tabulator)
        ]
        unlink(views)
        del views
    for _ in range(3):  # what a link holds is free once the link is
        gc.collect()
    assert models
    assert not [model for model in models if model() is not None]
