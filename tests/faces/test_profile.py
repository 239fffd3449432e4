"""`stageprof.profile` as a decorator: what is recorded is what the function does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import pytest
from dask import delayed
from distributed import Client

import stageprof
from stageprof_runtime.errors import UsageError


def double(x: int) -> int:
    return 2 * x


def test_each_call_is_recorded() -> None:
    prof = stageprof.profile()

    @prof
    def work(n: int) -> int:
        return int(sum(delayed(double)(i).compute(scheduler="sync") for i in range(n)))

    for n in (2, 3):
        assert work(n) == n * (n - 1)
        assert len(prof.recording.tasks()) == n
    assert work.__name__ == "work"


def test_of_a_coroutine_function_what_it_awaits_is_recorded() -> None:
    prof = stageprof.profile()

    @prof
    async def work(n: int) -> int:
        await asyncio.sleep(0)
        return int(delayed(double)(n).compute(scheduler="sync"))

    assert asyncio.iscoroutinefunction(work)
    assert asyncio.run(work(21)) == 42
    assert len(prof.recording.tasks()) == 1
    assert prof.recording.coverage()["complete"]


def test_what_a_coroutine_function_raises_is_its_callers() -> None:
    @stageprof.profile()
    async def work() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(work())


def numbers() -> Iterator[int]:
    yield 1


async def later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [numbers, later])
def test_a_generator_function_is_refused_with_what_to_do(function: object) -> None:
    with pytest.raises(UsageError, match=r"one by one.*with stageprof\.profile"):
        stageprof.profile()(function)  # type: ignore[arg-type]


@pytest.mark.parametrize("client", ["tcp://127.0.0.1:8786", [], Client])
def test_what_is_no_client_is_refused_before_anything_is_recorded(
    client: object, tmp_path: Path
) -> None:
    """Of a cluster, say, nothing would be recorded, and nothing would say so."""
    path = tmp_path / "x.stageprof"
    with (
        pytest.raises(UsageError, match=r"a \w+ as client; expected a distributed.Client"),
        stageprof.profile(path, client=client),
    ):
        raise AssertionError
    assert not path.exists()


def test_a_block_that_is_entered_for_the_user_is_called_by_the_users_line() -> None:
    """By `ExitStack`, or in a coroutine."""

    async def awaited() -> stageprof.profile:
        async with AsyncExitStack() as stack:
            return await stack.enter_async_context(stageprof.profile(gil=False))

    with ExitStack() as stack:
        prof = stack.enter_context(stageprof.profile(gil=False))
    for each in (prof, asyncio.run(awaited())):
        assert str(each.recording).startswith("stageprof  Block at test_profile.py:")


def test_of_a_coroutine_that_a_plain_function_gives_it_is_said_that_nothing_is_recorded() -> None:
    """Another decorator around a coroutine function may be one."""

    async def later() -> int:
        return 3

    @stageprof.profile(gil=False)
    def given() -> Coroutine[Any, Any, int]:
        return later()

    with pytest.warns(UserWarning, match=r"given gave is a coroutine, which runs after"):
        coroutine = given()
    assert asyncio.run(coroutine) == 3
