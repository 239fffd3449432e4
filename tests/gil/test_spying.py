"""How often py-spy is asked to look, and for how long."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stageprof_runtime.gil.spying import FIRST_S, LATER_RATE, SPELL_S, Spy
from stageprof_runtime.gil.unwinding import SPELL_S as UNWOUND_S
from stageprof_runtime.gil.unwinding import Unwinder


def spells(spy: Spy, count: int) -> list[tuple[int, int]]:
    """Looks a second and seconds of each of so many spells."""
    words = [spy._words("/dev/null") for _ in range(count)]
    return [(int(w[w.index("--rate") + 1]), int(w[w.index("--duration") + 1])) for w in words]


def test_looks_get_rarer_after_a_first_short_spell() -> None:
    """A long run has many looks anyway, and each takes a processor for a millisecond."""
    assert spells(Spy("py-spy", 1, 100), 3) == [(100, FIRST_S), *[(LATER_RATE, SPELL_S)] * 2]


@pytest.mark.parametrize(("kind", "length"), [(Spy, SPELL_S), (Unwinder, UNWOUND_S)])
def test_who_looks_seldom_goes_on_as_it_began(kind: type[Spy], length: int) -> None:
    first, second = spells(kind("py-spy", 1, 10), 2)

    assert first[0] == second[0] == 10
    assert second[1] == length


def test_one_that_cannot_be_started_is_no_end_of_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container near its number of processes: the watch took it for the end of its process."""

    def full() -> int:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", full)
    before = len(list(Path("/proc/self/fd").iterdir()))
    spy = Spy("/bin/true", os.getpid(), 10)
    spy.start()
    assert "cannot be started" in spy.refused
    assert spy.files == []
    assert len(list(Path("/proc/self/fd").iterdir())) == before
