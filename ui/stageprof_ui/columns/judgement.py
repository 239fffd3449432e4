"""What was found of two sides, as texts for the page that compares them."""

from __future__ import annotations

from typing import Any

from stageprof_collectors.comparison import sentences
from stageprof_collectors.comparison.blame import Blame
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import CountChange
from stageprof_collectors.comparison.times import TimeChange
from stageprof_collectors.findings.quantity import seconds
from stageprof_ui.words import text


def facts(found: Compared) -> dict[str, Any]:
    """Facts for the verdict, its reasons, and the tables of times and counts."""
    longest = max((max(t.before_s, t.after_s) for t in found.times[1:]), default=0.0) or 1.0
    shown = [t for t in found.times[1:] if t.before_s or t.after_s]
    return {
        "heading": heading(found),
        "verdict": text(sentences.verdict(found)),
        "sides": text(sentences.sides(found)),
        "unjudged": sentences.unjudged(found),
        "differences": [
            (each.kind, text("; ".join(each.before)), text("; ".join(each.after)))
            for each in found.differences
        ],
        "blames": [_blame(blame) for blame in found.blames],
        "times": [_time(t, longest) for t in shown],
        "wall": _time(found.wall, longest),
        "counts": [_count(c) for c in found.counts],
        "reasons": sentences.count_reasons(found),
    }


def heading(found: Compared) -> str:
    """The verdict in fewer words: `Not worse than the baseline`, `Not judged: wall time +12 %`."""
    if found.unjudged and not found.regressions:
        return f"Not judged: wall time {sentences.by(found.wall)}"
    return f"{'Worse' if found.regressions else 'Not worse'} than the baseline"


def _blame(blame: Blame) -> dict[str, Any]:
    """A stage that is slower, in a sentence, and the objects that travel in another way."""
    objects = [text(sentences.object_moved(moved)) for moved in blame.objects]
    return {"said": text(sentences.blamed(blame)), "objects": objects}


def _time(change: TimeChange, longest: float) -> dict[str, Any]:
    sides = (change.before_s, change.after_s)
    return {
        "name": change.name,
        "bars": [round(100 * min(s / longest, 1.0), 3) for s in sides],
        "seconds": [seconds(s) for s in sides],
        "change": sentences.by(change),
        "interval": sentences.interval(change),
        "word": sentences.word(change),
    }


def _count(change: CountChange) -> dict[str, Any]:
    return {
        "title": change.what.title,
        "sides": [sentences.spread(change, side) for side in (change.before, change.after)],
        "change": sentences.times_as_many(change),
        "word": sentences.count_word(change),
    }
