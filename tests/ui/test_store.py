"""All who look at a recording share what was read of it and made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stageprof_collectors.recording import Recording
from stageprof_ui.app import PAGES, shown
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
