"""The summary for a terminal: at 80 columns at most 30 lines, colours only where they show."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, TextIO

from rich.cells import cell_len
from rich.text import Text

from stageprof.folder import BEGAN, here
from stageprof.renderers import findings
from stageprof.renderers.page import (
    WIDTH,
    Laid,
    Row,
    bar,
    column,
    ending,
    heading,
    height,
    plain,
    printed,
    prose,
    red,
    row,
    several,
    whole,
)
from stageprof_collectors.account.first_task import FirstTask
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.summary import LayerLine, StageLine, StepLine, Summary
from stageprof_collectors.text import safe
from stageprof_ui.palette import STAGE_COLOURS

#: The lines that a small terminal shows at once.
HEIGHT: Final = 30
#: Cells of a bar that stands for the whole wall time.
_BAR: Final = 40
#: Characters that two lines hold wherever words end.
_TWO_LINES: Final = 120
#: Less than this share of the time to the first task is not worth a word.
_WORTH: Final = 0.01
#: How many steps, layers and commands are named: of the first that fits, else of the last.
_ROOM: Final = ((3, 2, 2), (3, 1, 2), (2, 1, 2), (2, 1, 1), (1, 1, 1), (1, 0, 1))


def show(summary: Summary, file: TextIO | None = None, notes: tuple[str, ...] = ()) -> None:
    """Print the summary, at the width of the terminal but never wider than it is readable."""
    below = (prose(Text(), safe(note, limit=_TWO_LINES), 0, "bold") for note in notes)
    printed([*lines(summary), *below], file or sys.stdout)


def text(summary: Summary) -> str:
    """The summary without colours."""
    return plain(lines(summary))


def lines(summary: Summary) -> list[Text]:
    """The lines of the summary, each safe to print."""
    found: list[Text] = []
    for steps, layers, commands in _ROOM:
        found = list(_lines(summary, steps, layers, commands))
        if height(found) <= HEIGHT:
            break
    return found


def _lines(summary: Summary, steps: int, layers: int, commands: int) -> Iterator[Text]:
    yield Text.assemble(("stageprof", "bold"), "  ", safe(summary.label))
    yield row(summary.facts)
    yield from red(summary.failures, _TWO_LINES)
    if summary.incomplete:
        yield prose(Text(), safe(summary.incomplete, limit=300), 0, "bold red", most=2)
    yield Text()
    yield from findings.top(summary)
    yield Text()
    yield heading("Where the time went", "wall  share")
    yield from map(_stage, summary.stages)
    if summary.steps and steps:
        yield Text()
        yield heading("Costliest steps")
        yield from map(_step, summary.steps[:steps])
    if summary.layers and layers:
        yield Text()
        yield heading("Slowest layers", "wall")
        yield from _layers(summary.layers[:layers])
    if layers or not summary.problems:  # which take its place where there is no room for both
        yield Text()
    yield from _rest(summary, commands)


def _rest(summary: Summary, commands: int) -> Iterator[Text]:
    if summary.first is not None:
        yield _first(summary.first)
    if summary.gil:
        yield _gil(summary.gil)
    yield _two_lines("Coverage", summary.coverage)
    if summary.missing:
        yield _two_lines("Missing", several(summary.missing, _TWO_LINES, " (--json has all)"))
    if summary.problems:
        more = f" (1 of {len(summary.problems)}; --json has all)" if summary.problems[1:] else ""
        worst = f"{safe(summary.problems[0], limit=_TWO_LINES - len(more))}{more}"
        yield _two_lines("Problem", worst, style="bold red")
    yield from _next(summary.file)[:commands]


def _stage(line: StageLine) -> Text:
    colour = STAGE_COLOURS[line.stage]
    head = Text(f"  {line.stage:<14}")  # colours are for bars: text is read on any ground
    tail = f"{seconds(line.wall_s):>14}{share(line.share):>7}"

    def middle(cells: int) -> Text:
        most = max(0, cells - 3)
        return Text(f"{bar(line.share, most) if most else '':<{cells}}", style=colour)

    return Row(head, middle, _BAR + 3, tail)


def _step(line: StepLine) -> Text:
    head = Text(f"  {seconds(line.wall_s):>11} {share(line.share):>5}  ")
    name, where = f"{line.stage} {line.step}", safe(line.where)

    def of(width: int) -> Iterator[Text]:
        if width < WIDTH:
            yield from prose(head, f"{name}, {where}" if where else name, 22).of(width)
        else:
            yield head.copy().append(f"{column(name, 28)}  {where}")

    return Laid(of)


def _layers(lines: Sequence[LayerLine]) -> Iterator[Text]:
    """A line each: the layer, who made it, its tasks and seconds."""
    tasks = [count(line.tasks, "task") for line in lines]
    long = max(map(len, tasks))
    for line, many in zip(lines, tasks, strict=True):
        tail = f"  {many:>{long}} {seconds(line.wall_s):>10}"
        yield Row(Text("  "), partial(_layer, line), WIDTH - 2 - len(tail), tail)


def _layer(line: LayerLine, cells: int) -> Text:
    """Its name and its line; where there is room for one only, the name."""
    name, room = safe(line.layer), max(20, cells // 3)
    if cells < room + 1 + 8:
        return Text(column(name, cells))
    where = ending(safe(line.line or "line unknown"), room)
    return Text(f"{column(name, cells - room - 1)} {column(where, room)}")


def _first(first: FirstTask) -> Text:
    """How long it took and where that went; its line only where there is room for a stage."""
    head = f"First task  {seconds(first.seconds)}"
    line = f" from {ending(safe(first.line), 24)}" if first.line else ""
    for begin in (f"{head}{line}:", f"{head}:"):
        out, left = _split(begin, first)
        if left < first.seconds:
            return out.append(_other(left, first))
    return Text(head)


def _split(head: str, first: FirstTask) -> tuple[Text, float]:
    """The stages that fit behind `head`, most first, and the seconds that are left for others."""
    out, left = Text(head), first.seconds
    for i, (stage, part) in enumerate(first.split):
        more = f"{',' if i else ''} {stage} {seconds(part)}"
        if cell_len(out.plain + more + _other(left - part, first)) > WIDTH:
            break
        out.append(more)
        left -= part
    return out, left


def _other(left: float, first: FirstTask) -> str:
    return f", other {seconds(left)}" if left >= _WORTH * first.seconds else ""


def _gil(said: str) -> Text:
    """How long tasks waited and what is to blame, in a line each where they are long."""
    said = safe(said, limit=200)
    what, mark, whom = said.partition("; ")

    def of(width: int) -> Iterator[Text]:
        room = width - 12
        apart = cell_len(said) > room >= cell_len(what + mark.strip())
        parts = [what + mark.strip(), whom] if apart and whom else [said]
        for head, part in zip(("GIL", ""), parts, strict=False):
            yield from prose(Text(f"{head:<12}"), part, 12).of(width)

    return Laid(of)


def _two_lines(head: str, what: str, style: str = "") -> Text:
    """At most two lines of the usual width, the second below the first."""
    return prose(Text(f"{head:<12}", style=style), safe(what, limit=300), 12, style, most=2)


def _next(file: str) -> list[Text]:
    if not file:
        return []
    name = safe(typed(file), limit=200)
    return [
        whole(f"Next        stageprof show --findings {name}"),
        whole(f"            stageprof app {name}"),
    ]


def typed(file: str) -> str:
    """The path as a command takes it."""
    return shlex.quote(_short(file))


def _short(file: str) -> str:
    """The path as one would type it here; whole, if this is not where the process began."""
    if not here():
        return file
    if here() != BEGAN:
        return os.path.abspath(file)  # noqa: PTH100 (it may be a link)
    near = os.path.relpath(file)
    return file if near.startswith("..") else near
