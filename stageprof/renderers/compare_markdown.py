"""A comparison as GitHub-flavoured markdown: a step's summary, or a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from stageprof.renderers.markdown import table
from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.blame import Blame, Part
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import FindingChange, Judged
from stageprof_collectors.comparison.times import TimeChange
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.text import safe

#: GitHub takes a comment of 65,536 characters.
SIZE: Final = 60_000
#: Files, values and findings that are named.
_MOST: Final = 10
_MARKS: Final = {Judged.WORSE: "**slower**", Judged.BETTER: "faster"}


def text(found: Compared) -> str:
    """The comparison in markdown, in less than `SIZE` bytes."""
    whole = "\n".join(_lines(found)) + "\n"
    return whole if len(whole.encode()) < SIZE else _cut(whole)


def _cut(whole: str) -> str:
    """As many whole lines as there is room for."""
    said = "\nThe rest is left out; `--json` has it all.\n"
    head = whole.encode()[: SIZE - len(said) - 1].decode("utf-8", "ignore")
    return head.rpartition("\n")[0] + said


def _lines(found: Compared) -> Iterator[str]:
    yield f"### stageprof compare: {_code(found.program or 'recordings')}"
    yield ""
    yield f"**{sentences.verdict(found)}** ({sentences.sides(found)})"
    for said in filter(None, (sentences.unjudged(found), sentences.drift(found))):
        yield ""
        yield f"{said[0].upper()}{said[1:]}."
    yield from _differences(found)
    for blame in found.blames:
        yield from _blame(blame)
    yield from _times(found)
    yield from _counts(found)
    yield from _findings(found)
    yield from _left_out(found)


def _differences(found: Compared) -> Iterator[str]:
    rows = [(d.kind, _values(d.before), _values(d.after)) for d in found.differences]
    yield from table(("not the same", "baseline", "candidate"), rows)


def _values(values: tuple[str, ...]) -> str:
    more = f" and {len(values) - _MOST:,} more" if values[_MOST:] else ""
    return ", ".join(_code(value or "not known") for value in values[:_MOST]) + more


def _blame(blame: Blame) -> Iterator[str]:
    yield ""
    yield f"- **{sentences.change_of(blame)}**: {_prose(sentences.why(blame))}"
    for kind, parts in (("step", blame.steps), ("layer", blame.layers), ("line", blame.lines)):
        if parts:
            yield f"  - {kind}: {', '.join(_part(part) for part in parts)}"
    for moved in blame.objects:
        yield f"  - object: {_prose(sentences.object_moved(moved))}"


def _part(part: Part) -> str:
    change = f"{sentences.signed(part.change_s)}, {sentences.explains(part)}"
    return f"{_code(sentences.part(part))} {change}"


def _times(found: Compared) -> Iterator[str]:
    shown = [t for t in found.times if t.before_s or t.after_s]
    rows = [_time(change) for change in (*shown[1:], shown[0])] if shown else []
    head = ("time", "baseline", "candidate", "change", "95 % interval", "")
    yield from table(head, rows)


def _time(t: TimeChange) -> tuple[str, ...]:
    took = seconds(t.before_s), seconds(t.after_s), sentences.by(t)
    return t.name, *took, sentences.interval(t), _MARKS.get(t.judged, "")


def _counts(found: Compared) -> Iterator[str]:
    rows = [
        (
            c.what.title,
            sentences.spread(c, c.before),
            sentences.spread(c, c.after),
            sentences.times_as_many(c),
            f"**{sentences.count_word(c)}**"
            if c.judged == Judged.WORSE
            else sentences.count_word(c),
        )
        for c in found.counts
    ]
    yield from table(("count", "baseline", "candidate", "change", ""), rows)
    for said in sentences.count_reasons(found):
        yield ""
        yield f"{said[0].upper()}{said[1:]}."


def _findings(found: Compared) -> Iterator[str]:
    rows = [
        (
            _how(f),
            str(f.severity),
            _prose(f.headline).replace("|", "\\|"),
            sentences.of_recordings(f),
        )
        for f in found.findings[:_MOST]
    ]
    yield from table(("finding", "severity", "", "recordings"), rows)
    if found.findings[_MOST:]:
        yield ""
        yield f"and {len(found.findings) - _MOST:,} findings more"


def _how(finding: FindingChange) -> str:
    if finding.judged == Judged.WORSE:
        return "**new**"
    return "new, not judged" if finding.came else "gone"


def _left_out(found: Compared) -> Iterator[str]:
    out = [*found.baseline.left_out, *found.candidate.left_out]
    if out:
        yield ""
        yield f"Left out, {len(out):,} of the recordings:"
        yield ""
    for file, why in out[:_MOST]:
        yield f"- {_code(PurePath(file).name)}: {_code(why)}"


def _code(value: str) -> str:
    return safe(value, "markdown")


def _prose(value: str) -> str:
    return safe(value, "prose", limit=600)
