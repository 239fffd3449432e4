"""The same work done again by a later compute: nobody had kept the results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.calls import Calls
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.findings.again import Again
from stageprof_collectors.findings.crowd import is_piece
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import at, made_at, of_wall
from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.findings.rounds import Made, built_upon, looping
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.sizing import kept_in_memory
from stageprof_collectors.replay.common import own_parts
from stageprof_collectors.replay.cost import cost_of, costs_of_graphs
from stageprof_collectors.replay.gone import without, worked_s
from stageprof_collectors.tables.crew import Crew

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

SAME, OTHER_KEYS, AMONG_OTHERS = "same", "other keys", "among others"
_DID: Final = {
    SAME: "{tasks}, most of {what}, computed again what an earlier compute had made",
    OTHER_KEYS: (
        "{tasks}, most of {what}, did again for other columns what an earlier compute had done"
    ),
    AMONG_OTHERS: "{tasks} made {what} again, with other work, as an earlier compute had done",
}
_TEXT: Final = (
    "Ask all questions at once: `dask.compute(a, b)` computes what they share one time. If later "
    "questions depend on earlier answers, persist what they share{bytes}, provided that "
    "it fits into the workers' memory."
)
_STORED: Final = (
    "Ask all questions at once: `dask.compute(a, b)` computes what they share one time. If later "
    "questions depend on earlier answers, write what they share{bytes} once (`to_parquet`, "
    "`to_zarr`) and read that: the workers' memory has no room for it."
)
_STORED_LOOP: Final = (
    "Write what the rounds of the loop share{bytes} once before it (`to_parquet`, `to_zarr`) and "
    "read that in each: the workers' memory has no room for it."
)
_TEXT_LOOP: Final = (
    "Persist what the rounds of the loop share{bytes}, once before it, provided that it fits into "
    "the workers' memory."
)
_TEXT_ROUNDS: Final = (
    " Each round does what the rounds before it did again: persist what a round makes before the "
    "next goes on with it."
)
_CODE: Final = """\
import dask

# first and second: what you call .compute() on{lines}
first, second = dask.compute(first, second)"""
_PERSIST: Final = """\
data = data.persist()  # `{what}`{made}; once, before the loop"""
_PERSIST_COLUMNS: Final = """\
# data is `{what}`{made}; once, before the loop, with all columns that you ask for
data = data[columns].persist()"""
_PERSIST_ROUND: Final = """state = state.persist()  # what a round makes at {made}; in each round"""


class _Main(NamedTuple):
    """What took most of the work that was done again."""

    layer: str
    prefix: str
    file: str
    line: int
    how: str
    nbytes: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all that was computed again."""
    if len(recording.timeline.graphs) < 2:
        return
    calls = Calls(recording)
    again = Again(recording, calls)
    if not len(again.rows) or _work_s(recording, again) < limits["share"] * recording.wall:
        return
    yield _finding(recording, calls, again)


def _finding(recording: Recording, calls: Calls, again: Again) -> Finding:
    saved, main = _saving(recording, calls, again), _main(recording, again)
    part = _work_s(recording, again) / max(worked_s(recording, again.rows), 1e-9)
    cost = part * cost_of(recording, runs=again.rows.tolist())
    owner = recording.replay.owner[again.rows]
    by = Counter(owner[owner >= 0].tolist())
    lines = sorted({calls.line(g) for g in by})
    loop = looping(calls, by)
    if loop and not kept_in_memory(recording, main.nbytes):  # it takes time to write and read it
        saved = 0.0, saved[1]
    places = ", ".join(filter(None, (at(file, line) for file, line in lines[:3])))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            _DID[main.how].format(
                tasks=count(len(again.rows), "task"),
                what=f"`{main.prefix}`{made_at(main.file, main.line)}",
            )
            + f"{f' (by {places})' if places else ''}: {of_wall(cost, recording)}"
        ),
        stage=None,
        evidence={
            "tasks_again": len(again.rows),
            "computes": len(by),
            "work_again_s": _work_s(recording, again),
            **({"kept_bytes": main.nbytes} if main.nbytes else {}),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, again, main, lines, loop=loop),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause=f"again:{main.layer}",
    )


def _work_s(recording: Recording, again: Again) -> float:
    """Seconds that were done again, over all threads; where that is not certain, the middle."""
    runs = recording.timeline.runs
    took = (runs["stop"] - runs["start"])[again.rows]
    return float((took * (again.low + again.high) / 2).sum()) / 1e9


def _saving(recording: Recording, calls: Calls, again: Again) -> tuple[float, float]:
    """With what was repeated gone; at most, with all questions asked at once besides."""
    rows = again.rows
    gone = without(recording, rows, again.high)
    owners = np.unique(recording.replay.owner[rows]).tolist()
    asked = [g for g in calls.blocking if g >= 0 and g <= max(owners)]
    at_once = replace(
        gone,
        together=(tuple(asked),),
        own=own_parts(recording, [asked]),
        workers=_workers(recording, rows),
    )
    low = recording.replay.saving(without(recording, rows, again.low))[0]
    high = max(recording.replay.saving(change)[1] for change in (gone, at_once))
    each = costs_of_graphs(recording, asked)
    high = min(high, sum(each) - max(each, default=0.0))  # the longest is still to be done
    return min(low, high), high


def _workers(recording: Recording, rows: Ints) -> int | None:
    local = (recording.timeline.runs["run"][rows] >= LOCAL).all()
    return None if local else max(1, len(Crew(recording).fullest))


def _main(recording: Recording, again: Again) -> _Main:
    """The layer that took most of what was done again."""
    runs = recording.timeline.runs
    took = (runs["stop"] - runs["start"])[again.rows] * again.high
    most = int(np.argmax(np.bincount(again.of, weights=took)))
    mine = again.of == most
    rows, layer = again.rows[mine], again.layers[most]
    row = recording.groups.rows[int(recording.groups.of_run[rows[0]])]
    if most < len(recording.layered.names):
        return _Main(row.layer, row.prefix, row.file, row.line, SAME, _kept(recording, rows))
    line = recording.groups.line_of(layer)
    if not again.alone[mine].all():
        return _Main(layer, key_split(layer), line.file, line.line, AMONG_OTHERS, 0)
    return _Main(layer, row.prefix, line.file, line.line, OTHER_KEYS, _kept(recording, rows))


def _kept(recording: Recording, rows: Ints) -> int:
    """Bytes of the results of some runs, each key once."""
    runs = recording.timeline.runs
    keys = recording.store.keys(runs["key"][rows])
    sizes = dict(zip(keys, runs["nbytes"][rows].tolist(), strict=True))
    return int(sum(sizes.values()))


def _fix(
    recording: Recording, again: Again, main: _Main, lines: list[tuple[str, int]], *, loop: bool
) -> Fix:
    kept = main.nbytes  # local schedulers tell of no bytes
    what = "with the columns of one question" if main.how == OTHER_KEYS else "here"
    held = f" ({size(kept)} {what})" if kept else ""
    fits = kept_in_memory(recording, kept)
    if loop and not fits:
        return Fix(_STORED_LOOP.format(bytes=held))
    if loop and _pieces(recording, again.rows):
        grown = built_upon(recording, again)
        text = _TEXT_LOOP.format(bytes=held) + _TEXT_ROUNDS * bool(grown)
        return Fix(text, _persisting(main, grown))
    places = " and ".join(filter(None, (at(file, line) for file, line in lines[:2])))
    return Fix(
        (_TEXT if fits else _STORED).format(bytes=held),
        _CODE.format(lines=f" (again at {places})" if places else ""),
    )


def _persisting(main: _Main, grown: set[Made]) -> str:
    once = _PERSIST_COLUMNS if main.how == OTHER_KEYS else _PERSIST
    before = once.format(what=main.prefix, made=made_at(main.file, main.line))
    each = [_PERSIST_ROUND.format(made=at(file, line)) for file, line, _ in sorted(grown)[:1]]
    alone = (main.file, main.line, main.prefix) in grown
    return "\n".join(each if alone else [before, *each])


def _pieces(recording: Recording, rows: Ints) -> bool:
    """Whether these are pieces of a collection; by their keys where no type was told."""
    name = recording.store.strings[int(recording.timeline.runs["type"][rows[0]])]
    return is_piece(name) if name else bool(recording.layered.chunked[rows[0]])


RULE = Rule(
    id="repeated-compute",
    stage=None,
    summary="A later compute does again what an earlier one had done.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.02, "of the wall time in work done again: less is not worth a change"),
    },
)
