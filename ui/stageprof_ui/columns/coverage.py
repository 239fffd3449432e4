"""What was seen of a run, and what was not, in sentences."""

from __future__ import annotations

from typing import Any, Final

from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe

#: Rows of a list of sentences; the rest is counted.
SAID: Final = 20
#: Processes that a sentence names.
_SOURCES: Final = 5
#: What became of a worker whose end is lost.
_GONE: Final = "died"
_STUCK: Final = "did not answer when the recording ended"


def coverage(recording: Recording) -> dict[str, Any]:
    """Facts for `templates/workers_coverage.html`: what was seen, in sentences."""
    c = recording.coverage()
    hooks = sorted(c["overhead"].items(), key=lambda item: -item[1]["seconds"])[:SAID]
    return {
        "sentences": [*_seen(c), *_lost(c)],
        "overhead": _cost(recording, c["overhead_s"]),
        "hooks": [(safe(n), f"{h['calls']:,}", seconds(h["seconds"])) for n, h in hooks],
    }


def _seen(c: dict[str, Any]) -> list[str]:
    whole = (
        "The recording is complete"
        if c["complete"]
        else f"The recording is incomplete ({safe(c['incomplete_reason'])})"
    )
    out = [f"{whole}; it holds {count(c['events'], 'event')}."]
    if c["workers"]:
        out.append(f"{c['instrumented']:,} of {count(c['workers'], 'worker')} were instrumented.")
    missing = [f"{safe(name)} was not: {safe(why)}." for name, why in c["not_instrumented"].items()]
    return out + _some(missing, "worker", "was not")


def _lost(c: dict[str, Any]) -> list[str]:
    """What is missing; that nothing is, where nothing is."""
    drops = [f"{count(n, 'event')} dropped: {safe(why)}." for why, n in c["dropped"].items() if n]
    out = _some(drops, "reason", "of drops")
    if c["batches_lost"]:
        lost = f"{c['batches_lost']:,} batches were lost on their way"
        out.append(f"{lost}; sent by {_first(c['sources_lost'])}.")
    out += _some(_ends(c["tails_lost"]), "worker", "did not tell all")
    out = out or ["Nothing was dropped or lost on the way."]
    out += _some([f"A hook was disabled: {safe(x)}." for x in c["disabled"]], "hook", "disabled")
    if c["unmeasured"]:
        out.append(f"Not measured for that: {', '.join(c['unmeasured'])}.")
    out += _some([f"Problem: {safe(x, limit=200)}." for x in c["problems"]], "problem")
    out += [f"A rule failed: {safe(x, limit=200)}." for x in c["rules_failed"][:SAID]]
    unexamined = [f"Objects not examined: {safe(x)}." for x in c["objects_not_examined"]]
    return out + _some(unexamined, "object", "not examined")


def _first(sources: list[str]) -> str:
    """The first of some processes, and how many more there are."""
    more = len(sources) - _SOURCES
    named = ", ".join(safe(name, limit=60) for name in sources[:_SOURCES])
    return named + (f" and {more:,} more" if more > 0 else "")


def _ends(tails: dict[str, Any]) -> list[str]:
    """What is missing of workers that died, or did not answer."""
    return [
        f"{safe(worker)} {_GONE if tail['died'] else _STUCK}; the last {seconds(tail['seconds'])} "
        f"of what it did are lost, in which {count(tail['tasks'], 'task')} ended."
        for worker, tail in tails.items()
    ]


def _some(sentences: list[str], noun: str, what: str = "") -> list[str]:
    """The first of some sentences, and how many more there are."""
    left = len(sentences) - SAID
    more = [f"{count(left, f'more {noun}')} {what}".strip() + "."] if left > 0 else []
    return sentences[:SAID] + more


def _cost(recording: Recording, overhead_s: float) -> str:
    if overhead_s <= 0:
        return "stageprof did not time its own hooks."
    processes = max(len(recording.store.places), 1)
    where = f"{processes:,} {'process' if processes == 1 else 'processes'}"
    whole = recording.wall * processes
    # Some run before and after the region: in a short one that is no part of it.
    part = f", {share(overhead_s / whole)} of their time" if overhead_s <= whole else ""
    return f"stageprof's own hooks took {seconds(overhead_s)} in {where}{part}."
