"""Undo: what probes replaced is afterwards the very same object as before."""

from __future__ import annotations

import functools
import itertools
import pickle
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

from stageprof_runtime import compat, patch, process, scheduler_plugin, session, worker_plugin
from stageprof_runtime.guard import FAILURES, Watch
from stageprof_runtime.patch import (
    Emit,
    Install,
    Undo,
    observe,
    observe_item,
    replace,
    replace_item,
    together,
)
from stageprof_runtime.ring import Ring

SETS = {
    "client": session.PROBES,
    "scheduler": scheduler_plugin.PROBES,
    "worker": worker_plugin.PROBES,
}
ABSENT = object()
ORDERS = list(itertools.permutations(range(3)))


def everything() -> dict[str, Any]:
    """What stands, raw, at every private place."""
    found: dict[str, Any] = {}
    for where in compat._PLACES:
        owner, name = compat.place(where)
        there = vars(owner).get(name, ABSENT)
        if where == "protocol.compressions":
            found |= {f"{where} {key}": way for key, way in there.items() if way.name}
        else:
            found[where] = there
    return found


def changed(before: dict[str, Any]) -> list[str]:
    return [where for where, now in everything().items() if now is not before[where]]


@pytest.fixture(autouse=True)
def same_as_before() -> Iterator[None]:
    before = everything()
    yield
    assert changed(before) == []


@pytest.mark.smoke
@pytest.mark.parametrize("role", SETS)
def test_undo_leaves_every_place_identical(role: str) -> None:
    before = everything()
    leave = process.join(role, Ring(), SETS[role])
    assert changed(before) != []
    assert process.failed == {}
    leave()
    assert changed(before) == []
    assert process.installed() == []


@pytest.mark.smoke
def test_every_place_is_replaced_by_some_probe() -> None:
    """A place that nobody replaces is a name in `compat` that nobody needs."""
    before = everything()
    leaves = [process.join(role, Ring(), SETS[role]) for role in SETS]
    untouched = set(before) - set(changed(before))
    for leave in leaves:
        leave()
    assert untouched == set()


@pytest.mark.parametrize("order", ORDERS)
def test_sessions_may_end_in_any_order(order: tuple[int, ...]) -> None:
    before = everything()
    leaves = [process.join(role, Ring(), SETS[role]) for role in ("client", "worker", "client")]
    for i in order[:-1]:
        leaves[i]()
        assert changed(before) != []
    leaves[order[-1]]()
    assert changed(before) == []


def test_leaving_twice_is_leaving_once() -> None:
    stay, leave = (process.join("client", Ring(), session.PROBES) for _ in range(2))
    leave()
    leave()
    assert process.has("client")
    stay()
    assert process.installed() == []


class Owner:
    def plain(self) -> str:
        return "plain"

    @classmethod
    def of_class(cls) -> str:
        return "class"

    @staticmethod
    def static() -> str:
        return "static"

    @functools.cached_property
    def cached(self) -> str:
        return "cached"


class Heir(Owner):
    pass


def louder(function: Any) -> Any:
    """Make any kind of descriptor say it louder."""
    if isinstance(function, functools.cached_property):
        inner = function.func
        prop = functools.cached_property(lambda self: inner(self).upper())
        prop.__set_name__(Owner, "cached")
        return prop
    kind = type(function) if isinstance(function, classmethod | staticmethod) else None
    call = function.__func__ if kind else function
    wrapped = lambda *args: call(*args).upper()  # noqa: E731
    return kind(wrapped) if kind else wrapped


#: On an heir only plain functions are replaced.
@pytest.mark.parametrize(
    ("owner", "name"),
    [(Owner, "plain"), (Owner, "of_class"), (Owner, "static"), (Owner, "cached"), (Heir, "plain")],
)
def test_every_kind_of_attribute_returns_as_it_was(owner: type[Owner], name: str) -> None:
    def said() -> Any:
        value = getattr(owner(), name)
        return value() if callable(value) else value

    raw, before = vars(owner).get(name, ABSENT), said()
    undo = replace(owner, name, louder)
    assert said() == before.upper()
    undo()
    undo()
    assert vars(owner).get(name, ABSENT) is raw
    assert said() == before


def adding(text: str) -> Callable[[Any], Any]:
    return lambda function: lambda *args: f"{function(*args)} {text}"


@pytest.mark.parametrize("order", ORDERS)
def test_replacements_may_be_undone_in_any_order(order: tuple[int, ...]) -> None:
    raw = vars(Owner)["plain"]
    undos = [replace(Owner, "plain", adding(str(i))) for i in range(3)]
    alive = [0, 1, 2]
    for i in order:
        undos[i]()
        alive.remove(i)
        assert Owner().plain() == " ".join(["plain", *map(str, alive)])
    assert vars(Owner)["plain"] is raw


@pytest.mark.parametrize("order", ORDERS)
def test_entries_of_a_dict_too(order: tuple[int, ...]) -> None:
    mapping = {"op": lambda: "plain"}
    before = mapping["op"]
    undos = [replace_item(mapping, "op", adding(str(i))) for i in range(3)]
    for i in order:
        undos[i]()
    assert mapping["op"] is before


def test_a_missing_entry_stays_missing() -> None:
    mapping: dict[str, Any] = {}
    replace_item(mapping, "op", adding("x"))()
    assert mapping == {}


def test_somebody_elses_replacement_is_left_alone_and_ours_beneath_it_goes_silent() -> None:
    class Victim(Owner):
        def plain(self) -> str:
            return "victim"

    victims = vars(Victim)["plain"]
    undo = replace(Victim, "plain", adding("ours"))
    ours = vars(Victim)["plain"]
    theirs = Victim.plain = lambda self: f"{ours(self)} theirs"  # type: ignore[method-assign]
    undo()
    assert vars(Victim)["plain"] is theirs
    assert Victim().plain() == "victim theirs"
    Victim.plain = ours  # type: ignore[method-assign]  # they leave: so do we, or others find us
    undo()
    assert vars(Victim)["plain"] is victims


def test_what_somebody_puts_back_after_us_is_not_built_upon() -> None:
    """A patch that begins within a recording and ends after it: each left one more call behind."""

    class Victim(Owner):
        def plain(self) -> str:
            return "victim"

    victims = vars(Victim)["plain"]
    mapping = {"op": victims}
    wrapped: list[Any] = []

    def make(raw: Any, _: Watch) -> Any:
        wrapped.append(raw)
        return functools.partial(raw)

    for _ in range(2):
        undo = together([observe(Victim, "plain", make), observe_item(mapping, "op", make)])
        ours = vars(Victim)["plain"], mapping["op"]
        Victim.plain = mapping["op"] = lambda _: "theirs"  # type: ignore[method-assign]
        undo()
        Victim.plain, mapping["op"] = ours  # type: ignore[method-assign]
    assert wrapped == [victims] * 4
    together([observe(Victim, "plain", make), observe_item(mapping, "op", make)])()
    assert vars(Victim)["plain"] is mapping["op"] is victims


def test_nothing_is_kept_where_somebody_ends_a_patch_of_theirs_that_was_there_before() -> None:
    """Ours stood on it, and is nowhere any more: each recording had left one behind."""

    class Victim(Owner):
        def plain(self) -> str:
            return "victim"

    def theirs(self: Victim) -> str:
        return "theirs"

    victims, kept = vars(Victim)["plain"], len(patch._layers)
    Victim.plain = theirs  # type: ignore[method-assign]
    undo = replace(Victim, "plain", adding("ours"))
    Victim.plain = victims  # type: ignore[method-assign]
    undo()
    assert vars(Victim)["plain"] is victims
    assert len(patch._layers) == kept


#: Dask's functions that are no methods.
FUNCTIONS = [
    where
    for where in compat._PLACES
    if not where.startswith("python.")
    for owner, name in [compat.place(where)]
    if isinstance(owner, ModuleType) and type(getattr(owner, name)) is FunctionType
]


@pytest.mark.parametrize("where", FUNCTIONS)
def test_functions_are_pickled_by_name_as_without_us(where: str) -> None:
    """Also one that was imported before it was wrapped, and by whom stageprof does not load."""
    owner, name = compat.place(where)
    before = getattr(owner, name)
    without = pickle.dumps(before)
    undos = [observe(owner, name, _wrapping), replace(owner, name, lambda f: f)]
    ours = getattr(owner, name)
    found, back = pickle.loads(pickle.dumps(ours)), pickle.dumps(before)
    assert pickle.loads(back) is before
    undos[0]()
    assert pickle.loads(pickle.dumps(before)) is before
    undos[1]()
    assert found is ours
    assert pickle.loads(back) is before
    assert pickle.dumps(before) == without


def _wrapping(function: Any, _: Watch) -> Any:
    @functools.wraps(function)
    def ours(*args: Any) -> Any:
        return function(*args)

    return ours


def test_an_undo_that_fails_does_not_keep_the_others_from_being_tried() -> None:
    done: list[int] = []

    def fails() -> None:
        raise RuntimeError("no")

    undo = together([lambda: done.append(1), fails, lambda: done.append(2)])
    with pytest.raises(RuntimeError):
        undo()
    assert done == [2, 1]


def test_a_probe_that_fails_half_way_leaves_nothing_and_is_named() -> None:
    raw = vars(Owner)["plain"]

    def half(emit: Emit) -> Undo:
        replace(Owner, "plain", adding("half"))
        raise AttributeError("this Dask has no such place")

    probes: list[Install] = [half]
    leave = process.join("client", Ring(), probes)
    try:
        assert vars(Owner)["plain"] is raw
        (why,) = [why for name, why in process.failed.items() if name.endswith(".half")]
        assert "no such place" in why
    finally:
        leave()
        process.failed.clear()


class Counted:
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def function(self, *args: Any, **kwargs: Any) -> Any:
        """Do as told: return or raise what is given."""
        self.calls.append((args, kwargs))
        if isinstance(args[0], BaseException):
            raise args[0]
        return args[0]

    async def coroutine(self, *args: Any, **kwargs: Any) -> Any:
        """The same, awaited."""
        return self.function(*args, **kwargs)


class Ours(Exception):
    """What a wrapper of ours fails with."""


def failing(when: str) -> Callable[[Any], Any]:
    def make(function: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if when == "before":
                raise Ours
            try:
                return function(*args, **kwargs)
            finally:
                raise Ours

        return wrapper

    return make


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("outcome", ["result", ValueError("theirs"), KeyboardInterrupt()])
def test_a_function_behind_a_broken_wrapper_is_called_once_and_its_outcome_stands(
    when: str, outcome: Any
) -> None:
    counted = Counted()
    undo = replace(Counted, "function", failing(when))
    for i in range(FAILURES + 5):
        try:
            got = counted.function(outcome, i, named=i)
        except BaseException as error:
            got = error
        assert got is outcome
    undo()
    assert counted.calls == [((outcome, i), {"named": i}) for i in range(FAILURES + 5)]


def test_a_broken_wrapper_keeps_no_result_alive() -> None:
    import gc
    import weakref

    counted = Counted()
    undo = replace(Counted, "function", failing("after"))
    thing = {1}.__class__([1])
    ref = weakref.ref(thing)
    assert counted.function(thing) is thing
    counted.calls.clear()
    del thing
    gc.collect()
    assert ref() is None
    undo()


def test_functions_that_call_themselves_keep_their_outcomes_apart() -> None:
    class Owner2:
        calls = 0

        def factorial(self, n: int) -> int:
            self.calls += 1
            return n * self.factorial(n - 1) if n else 1

    owner = Owner2()
    undo = replace(Owner2, "factorial", failing("after"))
    assert owner.factorial(8) == 40320
    assert owner.calls == 9
    undo()
