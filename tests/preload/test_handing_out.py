"""A recording is handed out as fast as it is taken, and not to somebody who does not take it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed.comm import connect, listen
from distributed.core import Status

from preload.shipped import ENOUGH, begins, hello, opened
from stageprof import flight
from stageprof_collectors.storage.flight import assemble
from stageprof_runtime.compat import unwritten
from stageprof_runtime.flight import recorder
from stageprof_runtime.flight.recorder import PIECE, UNTAKEN, Flight
from stageprof_runtime.flight.segments import Segments
from stageprof_runtime.guard import Watches

#: Bytes of a segment, of which the system's own buffers of a connection take a part.
LARGE = 32 << 20


class Handed:
    """One recording that is handed out over a real connection, and what that held in memory."""

    def __init__(self, paths: list[Path]) -> None:
        self._paths = paths
        self.most = 0
        self.result: Any = None

    def _cut(self) -> list[tuple[int, int]]:
        return [(os.open(path, os.O_RDONLY), path.stat().st_size) for path in self._paths]

    async def serve(self, comm: Any) -> None:
        """As a scheduler does that was asked."""
        write = comm.write

        async def watched(message: Any) -> None:
            await write(message)
            self.most = max(self.most, unwritten(SimpleNamespace(comm=comm)))

        comm.write = watched
        tape = SimpleNamespace(cut=self._cut, dropped={"disk: full": 3})
        mine = SimpleNamespace(
            _caught_up=lambda: asyncio.sleep(0), _tape=tape, watches=Watches("scheduler")
        )
        self.result = await Flight.hand_out(mine, comm)  # type: ignore[arg-type]

    async def to(self, reader: Callable[[Any], Awaitable[Any]]) -> Any:
        """What somebody makes of the connection."""
        served = asyncio.Event()

        async def serve(comm: Any) -> None:
            await self.serve(comm)
            served.set()

        async with listen("tcp://127.0.0.1:0", serve) as listener:
            comm = await connect(listener.contact_address)
            try:
                found = await reader(comm)
                await served.wait()
            finally:
                comm.abort()
        return found


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "1.segment"
    path.touch()
    os.truncate(path, LARGE)
    return path


async def _never(comm: Any) -> None:
    """Takes nothing."""


def test_who_takes_nothing_holds_little_memory_and_is_let_go(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TAKING_S", 0.05)
    handed = Handed([large, large])
    asyncio.run(handed.to(_never))
    assert UNTAKEN < handed.most < UNTAKEN + 2 * PIECE
    assert handed.result == Status.dont_reply


def test_who_takes_it_has_all_of_it_and_what_was_dropped(large: Path, tmp_path: Path) -> None:
    """As a dump does; one of an older version takes no notice of what was dropped."""
    target = tmp_path / "fetched"
    target.mkdir()
    handed = Handed([large, large])
    dropped = asyncio.run(handed.to(lambda comm: flight._read(comm, target)))
    assert dropped == {"disk: full": 3}
    assert [path.stat().st_size for path in target.iterdir()] == [LARGE, LARGE]
    assert handed.most < UNTAKEN + 2 * PIECE


@pytest.mark.parametrize(
    ("said", "expected"),
    [(None, {"disk too slow": 1}), ({"disk: full": 3}, {"disk: full": 3}), ("x", {})],
    ids=["an older recorder", "this one", "anything"],
)
def test_what_the_recorder_says_it_dropped_holds_before_what_its_segments_say(
    said: object, expected: dict[str, int], tmp_path: Path
) -> None:
    """On a full disk there may have been no room for them to say it."""
    folder = tmp_path / "flight"
    folder.mkdir()
    segments = Segments(str(folder), {}, *ENOUGH)
    segments.dropped["disk too slow"] += 1
    segments.write([*hello(), begins(1, 1)])
    segments.close()
    assert assemble(folder, tmp_path / "f.stageprof", said).dropped == expected
    assert opened(folder)[1].dropped == {"disk too slow": 1}
