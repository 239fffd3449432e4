"""What was seen of a run and what was not."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from stageprof_collectors.storage.tail import Tail, tails
from stageprof_collectors.tables.unseen import NOT_EXAMINED
from stageprof_runtime.event import TABLES
from stageprof_runtime.measured import unmeasured

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Timeline
    from stageprof_collectors.recording import Recording


def coverage(recording: Recording) -> dict[str, Any]:
    """See `Recording.coverage`.

    Keys: complete, incomplete_reason, events, dropped (by reason),
    sources_lost, batches_lost, tails_lost (worker that did not tell all: the seconds that are
    missing, the tasks that ended in them, whether it died or did not answer at the end),
    disabled, unmeasured (what is not measured for that), workers, instrumented, not_instrumented,
    problems,
    rules_failed (in the diagnoses made so far), overhead_s, overhead (by hook: calls, seconds),
    flight (of a flight recording what it covers, see `flight.Window`; else None).
    """
    store, timeline = recording.store, recording.timeline
    workers = recording.workers()
    marks = {name: [label for _, _, label in timeline.marks(name)] for name in _PROBLEMS}
    overhead, flight = _overhead(recording), store.header.get("flight")
    return {
        "complete": store.complete,
        "incomplete_reason": "" if store.complete else store.incomplete_reason,
        "events": sum(store.rows(name) for name in TABLES.values()),
        "dropped": _dropped(recording),
        "batches_lost": sum(origin.lost for origin in store.origins),
        "sources_lost": [store.places[i].name for i, o in enumerate(store.origins) if o.lost],
        "tails_lost": dict(map(_end, tails(recording))),
        "disabled": marks["hook disabled"],
        "unmeasured": unmeasured(marks["hook disabled"]),
        "workers": len(workers),
        "instrumented": int(workers["instrumented"].sum()) if len(workers) else 0,
        "not_instrumented": _missing(recording),
        "problems": [*(f"{n}: {x}" for n in _PROBLEMS[1:] for x in marks[n]), *_backward(timeline)],
        "rules_failed": sorted({x for d in recording.diagnoses.values() for x in d.failed}),
        "objects_not_examined": [x for _, _, x in timeline.marks(NOT_EXAMINED)],
        "overhead_s": sum(seconds for _, seconds in overhead.values()),
        "overhead": {name: {"calls": c, "seconds": s} for name, (c, s) in overhead.items()},
        "flight": flight if isinstance(flight, dict) else None,
    }


_PROBLEMS = ("hook disabled", "cluster not joined", "cluster lost")


def _end(tail: Tail) -> tuple[str, dict[str, Any]]:
    facts = tail._asdict()
    return facts.pop("worker"), facts


def _backward(timeline: Timeline) -> list[str]:
    if not timeline.backward:
        return []
    return [f"{timeline.backward:,} tasks end before they begin, and count as no time: wrong clock"]


def _dropped(recording: Recording) -> dict[str, int]:
    total: Counter[str] = Counter(recording.store.skipped)
    for origin in recording.store.origins:
        total.update(origin.drops)
    return dict(total)


def _missing(recording: Recording) -> dict[str, str]:
    workers = recording.workers()
    if not len(workers):
        return {}
    missing = workers[~workers["instrumented"].astype(bool)]
    return dict(zip(missing["worker"], missing["reason"], strict=True))


def _overhead(recording: Recording) -> dict[str, tuple[int, float]]:
    """Calls and seconds of each hook, over all places."""
    total: dict[str, tuple[int, float]] = {}
    for origin in recording.store.origins:
        for name, (calls, ns) in origin.cost.items():
            known = total.get(name, (0, 0.0))
            total[name] = known[0] + int(calls), known[1] + ns / 1e9
    return total
