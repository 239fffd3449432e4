"""A comparison for a terminal: what differs, what is worse and why, times as bars, counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Final, TextIO

from rich.cells import cell_len
from rich.text import Text

from stageprof.renderers.page import WIDTH, Laid, bar, column, heading, plain, printed, prose
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
#: Cells of a stage's name and its seconds, and of by how much they changed.
_SIDE, _BY = 26, 9
#: Cells in which the name of a step, layer or line still says something.
_SHORTEST: Final = 12
#: Recordings, findings and values of a condition that are named.
_MOST: Final = 5
#: A time of one side, and what is said of it.
Told = tuple[Text, Text]
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
    yield _block("", sentences.verdict(found), 0, style)
    for said in filter(None, (sentences.unjudged(found), sentences.drift(found))):
        yield _block("", f"{said[0].upper()}{said[1:]}.", 0)
    yield from _blames(found)
    yield from _times(found)
    yield from _counts(found)
    yield from _findings(found)


def _block(head: str, said: str, indent: int, style: str = "") -> Text:
    """A sentence, beside its head and below that."""
    return prose(Text(f"{head:<{indent}}"), safe(said, limit=600), indent, style)


def _left_out(name: str, side: Side) -> Iterator[Text]:
    for file, why in side.left_out[:_MOST]:
        yield _block("", sentences.left_out(name, file, why), 0, "yellow")
    if side.left_out[_MOST:]:
        yield Text(f"and {len(side.left_out) - _MOST:,} more")


def _differences(found: Compared) -> Iterator[Text]:
    if not found.differences:
        return
    yield Text()
    yield heading("Not the same on both sides")
    for each in found.differences:
        yield _block(f"  {each.kind}", _values(each.before), 13, "yellow")
        yield _block("", f"-> {_values(each.after)}", 13, "yellow")


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
        yield _block("  ", sentences.blamed(blame), 2)
        yield from _chain(blame)


def _chain(blame: Blame) -> Iterator[Text]:
    """Step, layer and line by line, with how much of the change each explains."""
    chain = (("step", blame.steps), ("layer", blame.layers), ("line", blame.lines))
    for kind, parts in chain:
        for i, part in enumerate(parts[:2]):
            yield _part("" if i else kind, part)
    for i, moved in enumerate(blame.objects):
        yield _block("" if i else "    object", sentences.object_moved(moved), 12)


def _part(kind: str, part: Part) -> Text:
    head = Text(f"    {kind:<8}")
    name, change = safe(sentences.part(part), limit=80), sentences.signed(part.change_s)
    explained = sentences.explains(part)

    def of(width: int) -> Iterator[Text]:
        room = width - 42
        if room >= _SHORTEST:
            yield head.copy().append(f"{column(name, room)}{change:>13}  {explained}")
        else:
            yield from prose(head, f"{name}: {change}, {explained}", 12).of(width)

    return Laid(of)


# -- tables -----------------------------------------------------------------------------------


def _times(found: Compared) -> Iterator[Text]:
    shown = [t for t in found.times[1:] if t.before_s or t.after_s]
    told = max(cell_len(_said(change)) for change in (found.wall, *shown))

    def of(width: int) -> Iterator[Text]:
        left = width - _SIDE - told
        cells = max(0, min(left, _BAR + max(0, width - WIDTH)))
        apart = left < 0  # what is said of a change has a line of its own
        title = f"{'Where the time goes':<20}{'median':>{cells + _SIDE - 20}}   change"
        interval = "  95 % interval" if told > _BY and not apart else ""
        yield Text(title + interval, style="bold")
        for time in (*_bars(shown, cells), *_wall(found.wall, cells)):
            yield from _apart(time) if apart else [time[0].append_text(time[1])]

    yield Text()
    yield Laid(of)


def _bars(shown: list[TimeChange], cells: int) -> Iterator[Told]:
    """Two bars each: the baseline's, and the candidate's below it with what is said of it."""
    longest = max((max(t.before_s, t.after_s) for t in shown), default=0.0) or 1.0
    for change in shown:
        colour = STAGE_COLOURS[Stage(change.name)]
        names = Text(f"  {change.name:<14}"), Text(" " * 16)
        times = change.before_s, change.after_s
        for name, style, s in zip(names, (f"dim {colour}", colour), times, strict=True):
            drawn = bar(s / longest, cells) if cells else ""
            name.append(f"{drawn:<{cells}}", style=style).append(f"{seconds(s):>10}", "default")
        yield names[0], Text()
        yield names[1], Text(_said(change), style=_STYLES.get(change.judged, "default"))


def _wall(wall: TimeChange, cells: int) -> Iterator[Told]:
    style = _STYLES.get(wall.judged, "bold")
    yield Text(f"  {WALL:<14}{'':<{cells}}{seconds(wall.before_s):>10}", "bold"), Text()
    after = Text().append(f"{'':<{16 + cells}}{seconds(wall.after_s):>10}", "bold")
    yield after, Text(_said(wall), style=style)


def _apart(told: Told) -> Iterator[Text]:
    """By how much a time changed beside it, and the rest below."""
    line, said = told
    by, rest = said.divide([_BY]) if cell_len(said.plain) > _BY else (said, Text())
    yield line.append_text(by)
    if words := " ".join(rest.plain.split()):
        yield Text(f"{words:>{_SIDE + _BY}}", style=rest.style)


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
    yield from map(_count, changed)
    for said in sentences.count_reasons(found):
        yield _block("  ", said, 2, "dim")


def _count(change: CountChange) -> Text:
    """A line; two if both ranges are too wide for one, or the terminal is narrow."""
    before, after = (sentences.spread(change, side) for side in (change.before, change.after))
    style = _STYLES.get(change.judged, "default")
    tail = f"{sentences.times_as_many(change):>9}  {sentences.count_word(change)}"

    def of(width: int) -> Iterator[Text]:
        head, said = f"  {change.what.title:<23}", f"{before} -> {after}"
        if width < WIDTH:
            yield Text(head.rstrip())
            yield from prose(Text("    "), f"{said}  {tail.strip()}", 4, style).of(width)
            return
        if len(said) > _RANGES:
            yield Text(f"{head}{before}")
            head, said = " " * len(head), f"-> {after}"
        yield Text(f"{head}{column(said, _RANGES)}").append(tail, style=style)

    return Laid(of)


def _findings(found: Compared) -> Iterator[Text]:
    why = sentences.unjudged_findings(found)
    for title, came in (("New findings", True), ("Findings that went", False)):
        mine = [f for f in found.findings if f.came == came]
        if not mine:
            continue
        yield Text()
        yield heading(title, f"not judged: {why}" if why else "")
        for finding in mine[:_MOST]:
            yield _finding(finding)
        if mine[_MOST:]:
            yield Text(f"  and {len(mine) - _MOST:,} more (--json has all)")


def _finding(finding: FindingChange) -> Text:
    said = f"{finding.headline} ({sentences.of_recordings(finding)})"
    head = Text().append(f"  {finding.severity:<10}", style=SEVERITY_STYLES[finding.severity])
    return prose(head, safe(said, limit=600), 12)
