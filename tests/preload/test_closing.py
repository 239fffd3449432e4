"""A folder that does not answer keeps no scheduler from closing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from preload.shipped import ENOUGH, begins, ends, hello, opened
from stageprof_runtime.flight import recorder
from stageprof_runtime.flight.apart import apart
from stageprof_runtime.flight.recorder import Flight
from stageprof_runtime.flight.segments import Segments
from stageprof_runtime.flight.tape import Tape
from stageprof_runtime.guard import Watch


class Hanging(Segments):
    """In a folder that takes nothing until it is `back`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(str(folder), {}, *ENOUGH)
        self.back = threading.Event()

    def write(self, batches: Any) -> None:
        self.back.wait()
        super().write(batches)


@pytest.fixture
def segments(tmp_path: Path) -> Iterator[Hanging]:
    folder = tmp_path / "flight"
    folder.mkdir()
    found = Hanging(folder)
    yield found
    found.back.set()


class Closing(Flight):
    """A recorder as far as it ends."""

    def __init__(self, segments: Segments) -> None:
        self._tape = Tape(segments, Watch("tape"))
        self._tape.start()
        self.gone = threading.Event()
        self._let_go = self.gone.set


def test_what_cannot_be_written_is_waited_for_so_long_and_told_in_one_line(
    segments: Hanging, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody else may take the folder until it is; and the loop itself is never held up."""
    monkeypatch.setattr(recorder, "CLOSING_S", 0.05)
    flight = Closing(segments)
    for batch in [*hello(), begins(1, 1), *ends(1, 5, 1)]:
        flight._tape.keep(batch)
    asyncio.run(flight._stopped())  # which would wait for a thread of the loop's pool

    (told,) = [record.getMessage() for record in caplog.records]
    assert f"{segments.folder} takes nothing" in told
    assert not flight.gone.is_set()
    segments.back.set()
    assert flight.gone.wait(30)
    assert opened(Path(segments.folder))[0].tasks()["key"].tolist() == ["long-1"]


def test_what_can_be_written_is(segments: Hanging, caplog: pytest.LogCaptureFixture) -> None:
    segments.back.set()
    flight = Closing(segments)
    for batch in [*hello(), begins(1, 1), *ends(1, 5, 1)]:
        flight._tape.keep(batch)
    asyncio.run(flight._stopped())
    assert flight.gone.is_set()
    assert caplog.records == []
    assert opened(Path(segments.folder))[0].tasks()["key"].tolist() == ["long-1"]


def test_who_waits_for_the_recording_meanwhile_keeps_no_process_from_ending(
    segments: Hanging,
) -> None:
    """When the loop ends it waits for the threads of its pool."""
    tape = Tape(segments, Watch("tape"))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(apart(tape.cut), 0.05))


def test_what_is_done_apart_gives_its_result_or_its_error() -> None:
    assert asyncio.run(apart(divmod, 7, 2)) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(apart(divmod, 7, 0))
