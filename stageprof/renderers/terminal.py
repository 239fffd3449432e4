"""The summary for a terminal: 80 columns, at most 30 lines, colours only where they show."""

from __future__ import annotations

import io
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator
from typing import Final, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from stageprof.palette import STAGE_COLOURS
from stageprof.quantity import count, seconds, share
from stageprof.summary import FirstTask, LayerLine, StageLine, StepLine, Summary
from stageprof.text import safe

WIDTH: Final = 80
#: Cells of a bar that stands for the whole wall time.
_BAR: Final = 40
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = str.maketrans({"█": "#", "·": "-", "…": "~", **dict.fromkeys(_EIGHTHS[1:], "#")})


def show(summary: Summary, file: TextIO | None = None) -> None:
    """Print the summary, at the width of the terminal but never wider than it is readable."""
    file = file or sys.stdout
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH
    for line in lines(summary):
        console.print(_fitted(line, console), no_wrap=True, overflow="ignore", crop=False)


def text(summary: Summary) -> str:
    """The summary without colours."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, highlight=False)
    for line in lines(summary):
        console.print(_fitted(line, console), no_wrap=True, overflow="ignore", crop=False)
    return out.getvalue().rstrip("\n")


def lines(summary: Summary) -> Iterator[Text]:
    """The lines of the summary, each safe to print."""
    yield Text.assemble(("stageprof", "bold"), "  ", safe(summary.label))
    yield Text(" · ".join(summary.facts))
    if summary.incomplete:
        yield Text(safe(summary.incomplete, limit=300), style="bold red")
    yield Text()
    yield _heading("Where the time went", "wall  share")
    yield from map(_stage, summary.stages)
    if summary.steps:
        yield Text()
        yield Text("Costliest steps", style="bold")
        yield from map(_step, summary.steps)
    if summary.layers:
        yield Text()
        yield _heading("Slowest layers", "wall")
        yield from map(_layer, summary.layers)
    if not summary.problems:  # which take its place: there are 30 lines
        yield Text()
    if summary.first is not None:
        yield _first(summary.first)
    yield from _wrapped("Coverage", summary.coverage)
    if summary.problems:
        more = f" (1 of {len(summary.problems)}; --json has all)" if summary.problems[1:] else ""
        worst = f"{safe(summary.problems[0], limit=90)}{more}"
        yield from _wrapped("Problem", worst, style="bold red")
    yield from _next(summary.file)


def _heading(left: str, right: str) -> Text:
    return Text(left + right.rjust(WIDTH - cell_len(left)), style="bold")


def _stage(line: StageLine) -> Text:
    colour = STAGE_COLOURS[line.stage]
    head = Text(f"  {line.stage:<14}", style=colour)
    tail = f"{seconds(line.wall_s):>14}{share(line.share):>7}"
    return head.append(f"{_bar(line.share):<{_BAR}}   ").append(tail, style="default")


def _bar(part: float) -> str:
    eighths = round(min(max(part, 0.0), 1.0) * _BAR * 8)
    whole, rest = divmod(max(eighths, 1 if part > 0.00005 else 0), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def _step(line: StepLine) -> Text:
    head = f"  {seconds(line.wall_s):>11} {share(line.share):>5}  "
    name = Text(_column(f"{line.stage} {line.step}", 28), style=STAGE_COLOURS[line.stage])
    return Text(head).append(name).append(f"  {safe(line.where)}", style="default")


def _layer(line: LayerLine) -> Text:
    name = _column(safe(line.layer), 30)
    where = _column(safe(line.line or "line unknown"), 20)
    return Text(f"  {name} {where} {count(line.tasks, 'task'):>15}{seconds(line.wall_s):>11}")


def _column(value: str, width: int) -> str:
    """The text in exactly so many cells; a wide character takes two."""
    if cell_len(value) > width:
        value = set_cell_size(value, width - 1) + "…"
    return set_cell_size(value, width)


def _first(first: FirstTask) -> Text:
    where = f" from {safe(first.line, limit=24)}" if first.line else ""
    out = Text(f"First task  {seconds(first.seconds)}{where}:")
    for i, (stage, part) in enumerate(first.split):
        more = f"{',' if i else ''} {stage} {seconds(part)}"
        if cell_len(out.plain + more) > WIDTH:
            break
        out.append(more, style=STAGE_COLOURS[stage])
    return out


def _wrapped(head: str, what: str, style: str = "") -> Iterator[Text]:
    """At most two lines, the second below the first."""
    found = textwrap.wrap(safe(what, limit=200), WIDTH - 12, max_lines=2, placeholder=" …")
    for i, line in enumerate(found):
        yield Text(f"{'' if i else head:<12}{line}", style=style)


def _next(file: str) -> Iterator[Text]:
    if not file:
        return
    name = safe(shlex.quote(_short(file)), limit=200)
    yield Text(f"Next        stageprof show --json {name}")
    yield Text(f"            stageprof export {name} --to perfetto")


def _short(file: str) -> str:
    """The path as one would type it here."""
    near = os.path.relpath(file)
    return file if near.startswith("..") else near


def _fitted(line: Text, console: Console) -> Text:
    """The line in the console's width and alphabet; a command is left whole, to be copied."""
    if "  stageprof " not in line.plain:
        line.truncate(console.width, overflow="ellipsis")
    try:
        line.plain.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        plain = line.plain.translate(_ASCII).encode("ascii", "backslashreplace").decode()
        return Text(plain, style=line.style)
    return line
