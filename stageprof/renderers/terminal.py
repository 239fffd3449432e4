"""The summary for a terminal: 80 columns, at most 30 lines, colours only where they show."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Iterator
from typing import Final, TextIO

from rich.cells import cell_len
from rich.text import Text

from stageprof.folder import BEGAN, here
from stageprof.renderers import findings
from stageprof.renderers.page import (
    WIDTH,
    Row,
    bar,
    column,
    ending,
    heading,
    plain,
    printed,
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
    below = (Text(safe(note, limit=WIDTH), style="bold") for note in notes)
    printed([*lines(summary), *below], file or sys.stdout)


def text(summary: Summary) -> str:
    """The summary without colours."""
    return plain(lines(summary))


def lines(summary: Summary) -> list[Text]:
    """The lines of the summary, each safe to print."""
    found: list[Text] = []
    for steps, layers, commands in _ROOM:
        found = list(_lines(summary, steps, layers, commands))
        if len(found) <= HEIGHT:
            break
    return found


def _lines(summary: Summary, steps: int, layers: int, commands: int) -> Iterator[Text]:
    yield Text.assemble(("stageprof", "bold"), "  ", safe(summary.label))
    yield from row(summary.facts)
    yield from red(summary.failures, _TWO_LINES)
    if summary.incomplete:
        yield from _two_lines(summary.incomplete, WIDTH, "bold red")
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
        yield from map(_layer, summary.layers[:layers])
    yield from _rest(summary, commands)


def _rest(summary: Summary, commands: int) -> Iterator[Text]:
    if not summary.problems:  # which take its place
        yield Text()
    if summary.first is not None:
        yield _first(summary.first)
    if summary.gil:
        yield from _gil(summary.gil)
    yield from _wrapped("Coverage", summary.coverage)
    if summary.missing:
        yield from _wrapped("Missing", several(summary.missing, _TWO_LINES, " (--json has all)"))
    if summary.problems:
        more = f" (1 of {len(summary.problems)}; --json has all)" if summary.problems[1:] else ""
        worst = f"{safe(summary.problems[0], limit=_TWO_LINES - len(more))}{more}"
        yield from _wrapped("Problem", worst, style="bold red")
    yield from _next(summary.file)[:commands]


def _stage(line: StageLine) -> Text:
    colour = STAGE_COLOURS[line.stage]
    head = Text(f"  {line.stage:<14}", style=colour)
    tail = f"{seconds(line.wall_s):>14}{share(line.share):>7}"

    def middle(cells: int) -> Text:
        most = max(0, cells - 3)
        return Text(f"{bar(line.share, most) if most else '':<{cells}}", style=colour)

    return Row(head, middle, _BAR + 3, tail)


def _step(line: StepLine) -> Text:
    head = f"  {seconds(line.wall_s):>11} {share(line.share):>5}  "
    name = Text(column(f"{line.stage} {line.step}", 28), style=STAGE_COLOURS[line.stage])
    return Text(head).append(name).append(f"  {safe(line.where)}", style="default")


def _layer(line: LayerLine) -> Text:
    where = column(ending(safe(line.line or "line unknown"), 20), 20)

    def middle(cells: int) -> Text:
        name = safe(line.layer)
        beside = cells >= 20 + 1 + 8  # else there is room for the name only
        return Text(f"{column(name, cells - 21)} {where}" if beside else column(name, cells))

    tail = f" {count(line.tasks, 'task'):>15} {seconds(line.wall_s):>10}"
    return Row(Text("  "), middle, 51, tail)


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
        out.append(more, style=STAGE_COLOURS[stage])
        left -= part
    return out, left


def _other(left: float, first: FirstTask) -> str:
    return f", other {seconds(left)}" if left >= _WORTH * first.seconds else ""


def _gil(said: str) -> Iterator[Text]:
    """One line, or two where they are long: how long tasks waited, and what is to blame."""
    said = safe(said, limit=200)
    what, mark, whom = said.partition("; ")
    if cell_len(said) <= WIDTH - 12 or cell_len(what + mark.strip()) > WIDTH - 12:
        yield from _wrapped("GIL", said)
        return
    for head, line in ("GIL", what + mark.strip()), ("", whom):
        yield from [Text(f"{head:<12}{line}")] if line else []


def _wrapped(head: str, what: str, style: str = "") -> Iterator[Text]:
    """At most two lines, the second below the first."""
    for i, line in enumerate(_two_lines(what, WIDTH - 12, style)):
        yield Text(f"{'' if i else head:<12}", style=style).append(line)


def _two_lines(what: str, width: int, style: str) -> Iterator[Text]:
    found = textwrap.wrap(safe(what, limit=300), width, max_lines=2, placeholder=" …")
    return (Text(line, style=style) for line in found)


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
