"""Recordings are opened one after another, and nobody is shown what a file held before."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clusters import soon
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import DamagedRecording
from stageprof_ui import opening
from stageprof_ui.columns.library import Entry
from stageprof_ui.opening import Opening
from stageprof_ui.store import Store
from ui.opened import asked, idle

Generated = Callable[[int], Path]


def entry(name: str, state: int = 1) -> Entry:
    return Entry(name, 1, state)


class Hand:
    """Opens recordings only as far as it is let."""

    def __init__(self, path: Path) -> None:
        self._path, self.go = path, threading.Event()
        self.made: list[str] = []
        self.stores: list[weakref.ref[Store]] = []
        self.at_once = self.most = 0

    def making(self, name: str) -> Callable[[], Store]:
        return lambda: self._make(name)

    def refusing(self, name: str) -> Callable[[], Store]:
        def fails() -> Store:
            held = self._make(name)
            raise ValueError(f"no sense in {held.name}")

        return fails

    def _make(self, name: str) -> Store:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        assert self.go.wait(30)
        self.made.append(name)
        store = Store(Recording.open(self._path))
        self.stores.append(weakref.ref(store))
        self.at_once -= 1
        return store

    def alive(self) -> int:
        gc.collect()
        return sum(store() is not None for store in self.stores)


@pytest.fixture
def hand(generated: Generated, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hand]:
    monkeypatch.setattr(opening, "SOON_S", 0.01)
    made = Hand(generated(1_000))
    yield made
    made.go.set()
    idle()


def test_what_nobody_waits_for_is_opened_one_after_another_the_last_first(hand: Hand) -> None:
    shelf = Opening()
    for name in "abcdef":
        assert shelf.made(entry(name), hand.making(name)) is None
    hand.go.set()
    idle()
    assert hand.most == 1
    assert hand.made == ["a", "f", "e", "d"]  # who waits for b or c asks again


def test_no_more_are_kept_than_may_be_open_whether_or_not_somebody_came_for_them(
    hand: Hand,
) -> None:
    shelf = Opening()
    hand.go.set()
    for name in "abcdef":
        shelf.made(entry(name), hand.making(name))
        idle()
    assert len(hand.made) == 6
    soon(lambda: hand.alive() == opening.OPEN)


def test_nobody_is_shown_the_run_that_a_file_held_before(hand: Hand) -> None:
    """Who asked for that went away before it was open."""
    shelf = Opening()
    assert shelf.made(entry("etl", 1), hand.making("old")) is None
    hand.go.set()
    idle()
    [old] = hand.stores
    new = asked(lambda: shelf.made(entry("etl", 2), hand.making("new")))
    assert new is not old()
    assert hand.made == ["old", "new"]


def test_a_refusal_is_told_once(hand: Hand) -> None:
    shelf = Opening()
    hand.go.set()
    with pytest.raises(DamagedRecording):
        asked(lambda: shelf.made(entry("x"), refused))
    assert asked(lambda: shelf.made(entry("x"), hand.making("x")))


def refused() -> Store:
    raise DamagedRecording("no sense in it")


def test_a_refusal_is_not_told_to_who_comes_much_later(
    hand: Hand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then it may be mended: who asked for it went away."""
    shelf = Opening()
    assert shelf.made(entry("x"), hand.refusing("x")) is None
    hand.go.set()
    idle()
    monkeypatch.setattr(opening, "ASKED_S", 0)
    assert asked(lambda: shelf.made(entry("x"), hand.making("x")))


def test_a_refusal_keeps_nothing_of_what_was_read(hand: Hand) -> None:
    shelf = Opening()
    assert shelf.made(entry("x"), hand.refusing("x")) is None
    hand.go.set()
    idle()
    assert len(hand.stores) == 1
    soon(lambda: hand.alive() == 0)
