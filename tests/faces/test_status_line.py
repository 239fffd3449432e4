"""The line that says how far a run is says as well that nothing goes on."""

from __future__ import annotations

import io
import re
import time
from dataclasses import dataclass, field

import pytest

from stageprof.statusline import QUIET_S, StatusLine, rendered
from stageprof_collectors.storage.collector import Live


def live(known: int, done: int) -> Live:
    return Live(counts={"scheduler": (known, known, done)})


@dataclass
class Clock:
    """What the line takes for the time."""

    now: float = 100.0
    line: StatusLine = field(init=False)

    def monotonic(self) -> float:
        return self.now

    def quiet(self, known: int, done: int, now: float) -> float:
        """What it has as the time without an end at an instant."""
        return self.line._quiet(live(known, done), now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "monotonic", made.monotonic)
    made.line = StatusLine(Live, io.StringIO())
    return made


def test_it_is_counted_since_the_last_task_ended(clock: Clock) -> None:
    assert clock.quiet(12, 4, 110) == 0
    assert clock.quiet(12, 4, 150) == 40
    assert clock.quiet(12, 5, 160) == 0
    assert clock.quiet(12, 5, 161) == 1


def test_while_there_is_no_task_to_end_nothing_is_counted(clock: Clock) -> None:
    """The program does something of its own for minutes, and then computes again."""
    assert clock.quiet(12, 12, 200) == 0
    assert clock.quiet(12, 12, 500) == 0
    assert clock.quiet(24, 12, 501) == 1


def test_after_long_the_line_says_so_and_how_to_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    before = rendered(live(12, 4), 93, 120, QUIET_S - 1)
    assert before.endswith("4 of 12 tasks")
    after = rendered(live(12, 4), 93, 120, 65)
    assert after.endswith(
        "4 of 12 tasks, none ended for 1 min 05 s; Ctrl-C ends it, with what is known"
    )
    assert len(rendered(live(12, 4), 93, 60, 65)) < 60


@pytest.mark.parametrize("columns", [40, 60, 120])
def test_it_is_read_on_any_ground(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """Only a cell before the text has the stage's colour: letters on white would be too pale."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = r"\x1b\[48;2;\d+;\d+;\d+m \x1b\[0m([^\x1b]*)"
    found = re.fullmatch(line, rendered(live(12, 4), 93, columns))
    assert found
    assert len(found[1]) < columns - 1
