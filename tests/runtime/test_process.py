"""What is installed in a process: nothing stays of a session, whatever its probes raise."""

from __future__ import annotations

import asyncio

import pytest

from stageprof_runtime import process
from stageprof_runtime.patch import Emit, Undo
from stageprof_runtime.ring import Ring

ERRORS = [RuntimeError, asyncio.CancelledError, SystemExit, GeneratorExit, MemoryError]


class Probe:
    """Raises where it is told to."""

    def __init__(self, name: str, error: type[BaseException] | None = None, when: str = "") -> None:
        self.__name__, self._error, self._when = name, error, when
        self.there = 0

    def __call__(self, _emit: Emit) -> Undo:
        self._raise("install")
        self.there += 1
        process.again[self] = lambda _: self._raise("again")
        return self.undo

    def undo(self) -> None:
        self.there -= 1
        self._raise("undo")

    def _raise(self, when: str) -> None:
        if self._error is not None and self._when == when:
            raise self._error("planted")


def probes(error: type[BaseException], when: str) -> list[Probe]:
    return [Probe("before"), Probe("broken", error, when), Probe("after")]


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("when", ["install", "again", "undo"])
def test_a_broken_probe_harms_no_other_and_leaves_nothing(
    error: type[BaseException], when: str
) -> None:
    mine = probes(error, when)
    leave, other = process.join("client", Ring(), mine), process.join("client", Ring(), mine)
    assert [probe.there for probe in mine] == [1, int(when != "install"), 1]
    other()
    leave()
    leave()
    assert process.installed() == []
    assert [probe.there for probe in mine] == [0, 0, 0]
    assert "planted" in process.failed.pop("test_process.broken")


@pytest.mark.parametrize("when", ["install", "undo"])
def test_ctrl_c_within_a_probe_is_the_users_and_leaves_nothing(when: str) -> None:
    mine = probes(KeyboardInterrupt, when)
    with pytest.raises(KeyboardInterrupt):
        process.join("client", Ring(), mine)()
    assert process.installed() == []
    assert [probe.there for probe in mine] == [0, 0, 0]


def test_an_error_that_cannot_say_what_it_is_harms_nobody() -> None:
    class Mute(Exception):
        def __repr__(self) -> str:
            raise ValueError

    mine = probes(Mute, "install")
    process.join("client", Ring(), mine)()
    assert process.failed.pop("test_process.broken") == "Mute"
