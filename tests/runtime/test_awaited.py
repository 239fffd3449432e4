"""Futures are looked for in what a call was given, and nothing of the user's is touched for that.

What is looked at is counted: on a busy machine time says little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType, SimpleNamespace
from typing import Any, cast

import pytest
from distributed import Client, Future, LocalCluster, as_completed, wait

import stageprof
from stageprof_runtime import awaited
from stageprof_runtime.awaited import LOOK, MIXED, keys
from stageprof_runtime.probes import waiting
from stageprof_runtime.seen import WAITS, look
from stageprof_runtime.stem import frames_of


class Known(Future[Any]):
    """One of no client."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __del__(self) -> None:
        """There is nothing to release."""


class Shy:
    """Notes each attribute that somebody asks it for, and fails for that."""

    asked: list[str]

    def __getattribute__(self, name: str) -> Any:
        Shy.asked.append(name)
        raise RuntimeError(f"not configured: {name}")

    def __call__(self) -> None:
        """It can be called."""


@pytest.fixture
def shy() -> Any:
    Shy.asked = []
    return Shy()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """The types of what is looked at, as it is."""
    found: list[type] = []
    plain = awaited._is_future

    def noting(item: object) -> bool:
        found.append(type(item))
        return plain(item)

    monkeypatch.setattr(awaited, "_is_future", noting)
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda f: f,
        lambda f: [f, 1],
        lambda f: ((1, {"x": [f]}), {2}),
        lambda f: (f.result, ()),
        lambda f: [*range(MIXED - 1), f],
        lambda f: [[f], *range(10 * MIXED)],
        lambda f: dict.fromkeys(range(10 * MIXED), f),
    ],
)
def test_they_are_found_in_containers_and_as_those_whose_methods_are_called(
    make: Callable[[Known], object],
) -> None:
    assert set(keys(make(Known("a")))) == {"a"}


@pytest.mark.parametrize(
    "make",
    [
        lambda shy: shy,
        lambda shy: [shy, (shy, {"x": shy})],
        lambda shy: MethodType(print, shy),
        lambda shy: [shy] * 10 * MIXED,
    ],
)
def test_nothing_is_asked_of_what_is_the_user_s(make: Callable[[Any], object], shy: Any) -> None:
    assert keys(make(shy)) == []
    assert Shy.asked == []


@pytest.mark.parametrize("kind", [list, tuple, set, lambda many: dict(enumerate(many))])
def test_a_long_container_of_other_things_is_not_looked_through(
    kind: Callable[[Any], object], looked: list[type]
) -> None:
    assert keys((kind(range(100_000)), Known("a"))) == ["a"]
    assert len(looked) <= 5


def test_so_many_are_looked_at_and_no_more(looked: list[type]) -> None:
    assert len(keys([Known("a")] * 2 * LOOK)) == LOOK - 1
    assert len(looked) <= LOOK + 1


@contextmanager
def recorded() -> Iterator[tuple[Client, stageprof.profile]]:
    """A client that is recorded, with one worker."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
        stageprof.profile(client=client, gil=False) as prof,
    ):
        yield client, prof


def calls(prof: stageprof.profile) -> list[str]:
    """What the caller waited in, by name."""
    store = prof.recording.store
    return [store.strings[call] for call in store.table("block")["call"].tolist()]


def test_a_result_that_comes_with_its_future_is_not_looked_at(looked: list[type]) -> None:
    with recorded() as (client, prof):
        futures = client.map(_many, range(3), pure=False)
        wait(futures)
        looked.clear()
        for _, result in as_completed(futures, with_results=True):
            assert len(result) == MIXED
        assert looked.count(float) == 0
    assert calls(prof).count("as_completed") == 3


def test_who_asks_for_the_next_result_by_name_waits_as_in_a_loop() -> None:
    with recorded() as (client, prof):
        done = as_completed(client.map(abs, range(3), pure=False))
        assert sum(done.next().result() for _ in range(2)) + next(done).result() == 3
    assert calls(prof).count("as_completed") == 3


def _many(number: int) -> list[float]:
    return [float(number)] * MIXED


def test_what_a_client_is_to_call_is_not_asked_for_its_name(shy: Any) -> None:
    gather: Any = Client._gather
    assert [waiting._name(each) for each in (shy, MethodType(shy, 1))] == ["", ""]
    assert [waiting._name(each) for each in (gather, MethodType(gather, 1))] == ["_gather"] * 2
    assert Shy.asked == []


class Results:
    """A queue of results that notes what a thread's stack says when it asks for the next."""

    state = (0, "")

    def empty(self) -> bool:
        self.state = look(frames_of(sys._getframe()))
        return False


def test_who_asks_for_the_next_result_waits_and_puts_nothing_together() -> None:
    """Seen as construction it took, of a loop that uses each result, part of the use with it."""
    results = Results()
    held = SimpleNamespace(queue=results, _get_and_raise=str)
    assert as_completed.__next__(cast(Any, held)) == ""
    assert results.state == (WAITS, "")
