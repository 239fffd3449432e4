"""A comparison for a terminal: what differs, what is worse and why, times as bars, counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, TextIO

from rich.text import Text

from stageprof.renderers.page import WIDTH, bar, column, heading, plain, printed, wrapped
from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.blame import Blame, Part
from stageprof_collectors.comparison.comparison import Compared, Side
from stageprof_collectors.comparison.counts import CountChange, FindingChange, Judged
from stageprof_collectors.comparison.times import WALL, TimeChange
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import SEVERITY_STYLES, STAGE_COLOURS

#: Cells of a bar that stands for the longest time.
_BAR: Final = 18
#: Cells for a count on both sides: the line has a title, the change and a word besides.
_RANGES: Final = 34
#: Recordings, findings and values of a condition that are named.
_MOST: Final = 5
_STYLES: Final = {Judged.WORSE: "bold red", Judged.BETTER: "green"}


def show(found: Compared, file: TextIO | None = None) -> None:
    """Print the comparison."""
    printed(lines(found), file or sys.stdout)


def text(found: Compared) -> str:
    """The same without colours."""
    return plain(lines(found))


def lines(found: Compared) -> Iterator[Text]:
    """The lines of a comparison, each safe to print."""
    program = safe(found.program, limit=60) or "recordings"
    yield Text.assemble(("stageprof compare", "bold"), "  ", program)
    yield Text(sentences.sides(found))
    yield from _left_out("baseline", found.baseline)
    yield from _left_out("candidate", found.candidate)
    yield from _differences(found)
    yield Text()
    style = _STYLES[Judged.WORSE] if found.regressions else "bold"
    yield from _block("", sentences.verdict(found), 0, style)
    for said in filter(None, (sentences.unjudged(found), sentences.drift(found))):
        yield from _block("", f"{said[0].upper()}{said[1:]}.", 0)
    yield from _blames(found)
    yield from _times(found)
    yield from _counts(found)
    yield from _findings(found)


def _block(head: str, said: str, indent: int, style: str = "") -> Iterator[Text]:
    """A sentence, beside its head and below that."""
    for i, line in enumerate(wrapped(safe(said, limit=600), WIDTH - indent)):
        start = " " * indent if i else f"{head:<{indent}}"
        yield Text(start).append(line, style=style or "default")


def _left_out(name: str, side: Side) -> Iterator[Text]:
    for file, why in side.left_out[:_MOST]:
        yield from _block("", sentences.left_out(name, file, why), 0, "yellow")
    if side.left_out[_MOST:]:
        yield Text(f"and {len(side.left_out) - _MOST:,} more")


def _differences(found: Compared) -> Iterator[Text]:
    if not found.differences:
        return
    yield Text()
    yield heading("Not the same on both sides")
    for each in found.differences:
        yield from _block(f"  {each.kind}", _values(each.before), 13, "yellow")
        yield from _block("", f"-> {_values(each.after)}", 13, "yellow")


def _values(values: tuple[str, ...]) -> str:
    more = f" and {len(values) - _MOST} more" if values[_MOST:] else ""
    return "; ".join(safe(value) or "not known" for value in values[:_MOST]) + more


# -- why --------------------------------------------------------------------------------------


def _blames(found: Compared) -> Iterator[Text]:
    if not found.blames:
        return
    yield Text()
    yield heading("Why")
    for blame in found.blames:
        yield from _block("  ", sentences.blamed(blame), 2)
        yield from _chain(blame)


def _chain(blame: Blame) -> Iterator[Text]:
    """Step, layer and line by line, with how much of the change each explains."""
    chain = (("step", blame.steps), ("layer", blame.layers), ("line", blame.lines))
    for kind, parts in chain:
        for i, part in enumerate(parts[:2]):
            yield _part("" if i else kind, part)
    for i, moved in enumerate(blame.objects):
        yield from _block("" if i else "    object", sentences.object_moved(moved), 12)


def _part(kind: str, part: Part) -> Text:
    name = column(safe(sentences.part(part), limit=80), 38)
    change = sentences.signed(part.change_s)
    return Text(f"    {kind:<8}{name}{change:>13}  {sentences.explains(part)}")


# -- tables -----------------------------------------------------------------------------------


def _times(found: Compared) -> Iterator[Text]:
    longest = max((max(t.before_s, t.after_s) for t in found.times[1:]), default=0.0) or 1.0
    yield Text()
    yield heading("Where the time goes", "median   change  95 % interval           ")
    for change in found.times[1:]:
        if change.before_s or change.after_s:
            yield from _time(change, longest)
    wall = found.wall
    style = _STYLES.get(wall.judged, "")
    yield Text(f"  {WALL:<14}{'':<{_BAR}}{seconds(wall.before_s):>10}", style="bold")
    yield Text(f"  {'':<14}{'':<{_BAR}}{seconds(wall.after_s):>10}", "bold").append(
        _said(wall), style=style or "default"
    )


def _time(change: TimeChange, longest: float) -> Iterator[Text]:
    """Two bars: the baseline's, and the candidate's below it with what is said of it."""
    colour = STAGE_COLOURS[Stage(change.name)]
    before, after = (bar(s / longest, _BAR) for s in (change.before_s, change.after_s))
    yield (
        Text(f"  {change.name:<14}", style=colour)
        .append(f"{before:<{_BAR}}", style=f"dim {colour}")
        .append(f"{seconds(change.before_s):>10}", style="default")
    )
    line = Text(" " * 16).append(f"{after:<{_BAR}}", style=colour)
    line.append(f"{seconds(change.after_s):>10}", style="default")
    yield line.append(_said(change), style=_STYLES.get(change.judged, "default"))


def _said(change: TimeChange) -> str:
    """The change, where it may lie, and the judgement in a word."""
    ratio = sentences.by(change)
    return f"{ratio:>9}  {sentences.interval(change):<18} {sentences.word(change)}".rstrip()


def _counts(found: Compared) -> Iterator[Text]:
    changed = [c for c in found.counts if sentences.shows(c)]
    yield Text()
    if not changed:
        yield heading("Counts", "tasks, layers, bytes, transitions: as before")
        return
    yield heading("Counts that changed")
    for change in changed:
        yield from _count(change)
    for said in sentences.count_reasons(found):
        yield from _block("  ", said, 2, "dim")


def _count(change: CountChange) -> Iterator[Text]:
    """A line; two if both ranges are too wide for one."""
    before, after = (sentences.spread(change, side) for side in (change.before, change.after))
    head, said = f"  {change.what.title:<23}", f"{before} -> {after}"
    if len(said) > _RANGES:
        yield Text(f"{head}{before}")
        head, said = " " * len(head), f"-> {after}"
    tail = f"{sentences.times_as_many(change):>9}  {sentences.count_word(change)}"
    yield Text(f"{head}{column(said, _RANGES)}").append(
        tail, style=_STYLES.get(change.judged, "default")
    )


def _findings(found: Compared) -> Iterator[Text]:
    why = sentences.unjudged_findings(found)
    for title, came in (("New findings", True), ("Findings that went", False)):
        mine = [f for f in found.findings if f.came == came]
        if not mine:
            continue
        yield Text()
        yield heading(title, f"not judged: {why}" if why else "")
        for finding in mine[:_MOST]:
            yield from _finding(finding)
        if mine[_MOST:]:
            yield Text(f"  and {len(mine) - _MOST:,} more (--json has all)")


def _finding(finding: FindingChange) -> Iterator[Text]:
    said = f"{finding.headline} ({sentences.of_recordings(finding)})"
    lines = list(_block("", said, 12))
    head = Text(f"  {finding.severity:<10}", style=SEVERITY_STYLES[finding.severity])
    yield head.append(lines[0].plain[12:], style="default") if lines else head
    yield from lines[1:]
