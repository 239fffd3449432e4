"""A coroutine that is awaited in turns behaves as one that is awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from stageprof_runtime import turns
from stageprof_runtime.turns import in_turns

Program = Callable[[list[str]], Coroutine[Any, Any, Any]]


async def returns(said: list[str]) -> int:
    await asyncio.sleep(0)
    said.append("after")
    return 7


async def raises(said: list[str]) -> None:
    await asyncio.sleep(0)
    said.append("after")
    raise LookupError("theirs")


async def stops(_: list[str]) -> None:
    raise StopAsyncIteration("theirs")


async def is_cancelled(said: list[str]) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        said.append("cancelled")
        raise
    return "never"


async def goes_on_when_cancelled(said: list[str]) -> str:
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        said.append("cancelled")
        await asyncio.sleep(0)
    return "went on"


async def times_out(said: list[str]) -> str:
    try:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    except TimeoutError:
        said.append("timed out")
    return "after"


def outcome(program: Program, wrap: Callable[[Any], Awaitable[Any]]) -> tuple[str, list[str]]:
    """What comes out of a program that is cancelled if it has not ended, and what it said."""
    said: list[str] = []

    async def main() -> Any:
        async def awaits() -> Any:
            return await wrap(program(said))

        task = asyncio.ensure_future(awaits())
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        return await task

    try:
        return repr(asyncio.run(main())), said
    except BaseException as error:
        return repr(error), said


@pytest.mark.parametrize(
    "program", [returns, raises, stops, is_cancelled, goes_on_when_cancelled, times_out]
)
def test_what_comes_out_is_the_same(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONG_NS", 0)
    told: list[tuple[int, int]] = []
    plain = outcome(program, lambda coroutine: coroutine)
    taken = outcome(
        program, lambda coroutine: in_turns(coroutine, lambda a, b, _: told.append((a, b)))
    )
    assert taken == plain
    assert told == sorted(told)
    assert told


def test_a_coroutine_that_is_dropped_is_closed() -> None:
    said: list[str] = []

    async def program() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            said.append("closed")

    awaited = in_turns(program(), lambda *_: None)
    awaited.send(None)
    awaited.close()
    assert said == ["closed"]


def test_turns_are_told_one_by_one_and_what_is_awaited_between_them_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock that goes on by ten seconds at each await."""
    clock = [0]
    monkeypatch.setattr(turns, "now_ns", lambda: clock[0])
    told: list[tuple[int, int]] = []

    async def program() -> None:
        for seconds in (1, 2):
            clock[0] += seconds * turns.LONG_NS
            await asyncio.sleep(0)
        clock[0] += turns.LONG_NS - 1  # short

    awaited = in_turns(program(), lambda a, b, _: told.append((a, b)))
    for _ in range(2):
        awaited.send(None)
        clock[0] += 10 * turns.LONG_NS
    assert next(awaited, "ended") == "ended"
    assert told == [(0, turns.LONG_NS), (11 * turns.LONG_NS, 13 * turns.LONG_NS)]
