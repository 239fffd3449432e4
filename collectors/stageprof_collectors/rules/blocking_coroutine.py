"""Tasks that are coroutines and wait without `await`: their worker's event loop waits with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.intervals import clip
from stageprof_collectors.account.turns import Turns, turns
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.misplaced import IN_THREAD
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.waiters import ASKING, had_of
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_COMPUTE: Final = STEP["compute"]
#: What of the saving is certain: threads take turns at what is not waiting.
_LEAST: Final = 0.75

_TEXT: Final = (
    "A worker runs coroutines (`async def`) on its event loop, one at a time unless they `await`: "
    "while `{name}` sleeps, or asks for something by a library that is not made for asyncio, the "
    "worker does nothing else and reports nothing. Make it a plain function, which a thread of the "
    "worker runs (the code below does so without a change of it), or `await` what takes long."
)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for each layer at a line."""
    every = turns(recording.timeline)
    long = every.some(every.stop - every.start >= limits["turn_s"] * 1e9)
    of = recording.groups.of_run[long.rows]
    had = had_of(recording, ASKING) if len(long.rows) else {}
    for row in np.unique(of).tolist():
        mine = long.some(of == row)
        waiting = _waiting(mine, had)
        if row and waiting >= limits["waiting"]:
            yield from _found(recording, recording.groups.rows[row], mine, waiting, limits)


def _waiting(turns: Turns, had: Mapping[int, float]) -> float:
    """The part of some turns in which they did not compute.

    Without a processor is also who computes where others keep them busy: by place, so much of one
    could be had.
    """
    took = turns.stop - turns.start
    could = float((took * [had.get(place, 1.0) for place in turns.place.tolist()]).sum())
    return max(0.0, 1.0 - float(turns.cpu.sum()) / could) if could else 0.0


def _found(
    recording: Recording, row: Row, kept: Turns, waiting: float, limits: Limits
) -> Iterator[Finding]:
    cost, most = _cost(recording, kept), _at_once(recording, kept)
    high = cost * waiting * (1 - 1 / most)
    if min(cost, high) < limits["share"] * recording.wall:
        return
    saved = _LEAST * high, high
    took = (kept.stop - kept.start) / 1e9
    runs = np.unique(kept.rows)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(len(runs), 'task')} of `{row.prefix}`{made_at(row.file, row.line)}, a "
            f"coroutine, keep the event loop of their worker for up to "
            f"{seconds(float(took.max()))} each time: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "tasks": len(runs),
            "kept_s": float(took.sum()),
            "longest_s": float(took.max()),
            "waiting_share": waiting,
            "at_once": most,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(name=row.prefix), IN_THREAD.format(name=word(row.prefix, "the_coroutine"))
        ),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"layer:{row.prefix}",
        also=frozenset({"tasks in line"}),
    )


def _cost(recording: Recording, kept: Turns) -> float:
    """Seconds of the critical path in these turns."""
    lanes = kept.lanes()
    steps = (s for s in recording.path_steps if s.what.step == _COMPUTE and s.what.place in lanes)
    met = (span for s in steps for span in clip(lanes[s.what.place], s.start, s.stop))
    return sum(stop - start for start, stop, _ in met) / 1e9


def _at_once(recording: Recording, kept: Turns) -> int:
    """How many of them a worker's threads would run at once."""
    workers = max(1, len(np.unique(kept.place)))
    threads = max((member.threads for member in Crew(recording).members), default=1)
    return max(1, min(threads, len(np.unique(kept.rows)) // workers))


RULE = Rule(
    id="blocking-coroutine",
    stage=Stage.EXECUTION,
    summary="Tasks that are coroutines wait without `await`, and their worker's loop with them.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "turn_s": Limit(0.02, "of a turn: what is shorter delays a worker's answers by little"),
        "waiting": Limit(
            0.5, "of these turns: what computes, threads of one process take in turns"
        ),
        "share": Limit(0.05, "of the wall time, in cost and saving: less is not worth a change"),
    },
    instead_of=frozenset({"io-bound"}),
)
