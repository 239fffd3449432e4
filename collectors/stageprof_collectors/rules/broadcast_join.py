"""A join for which both sides are shuffled, though one of them is small.

Dask joins a side of one partition with each partition of the other as it is; it goes by the number
of partitions, not by their size. A small table that was read from many files is shuffled, and so is
all that it is joined with.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from dask.utils import key_split

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.crowd import Bools
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.reshuffles import JOINING, Reshuffles
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.gone import without
from stageprof_collectors.tables.lines import Line
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What waits until all rows have.
_BARRIER: Final = "shuffle-barrier"
#: What is left of the join's own tasks, which read what was shuffled from disk, at least.
_LEFT: Final = 0.25

_TEXT: Final = (
    "Put the smaller side into one partition before the join: each partition of the other is "
    'joined with the whole of it where it is, and nothing is shuffled. That needs `how="inner"`, '
    "or a left join whose right side is the small one (or a right join, the other way round). A "
    "later join or groupby by the same key finds the rows not brought together, and shuffles them."
)
_CODE: Final = """\
# small is the side of {small}{made}, which itself stays as it is
small = small.repartition(npartitions=1)"""


class _Side(NamedTuple):
    """One side of a join: bytes of what went in, and the runs by which its rows went.

    `barriers` waited for these, and `joined` for the barriers; `layers` are those of what went in.
    """

    nbytes: int
    layers: frozenset[str]
    rows: Ints
    barriers: Ints
    joined: Ints


class _Join(NamedTuple):
    """A join that shuffles for a small side, by the layer of its own tasks."""

    layer: str
    small: _Side
    large: _Side


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for the joins of each line, where the small side goes into each worker easily."""
    alike: defaultdict[tuple[Line, str], list[_Join]] = defaultdict(list)
    for join in _joins(recording):
        small, large = join.small.nbytes, join.large.nbytes
        if 0 < small <= min(limits["bytes"], large / limits["times"]):
            line = recording.groups.line_of(join.layer)
            alike[line, "" if line.file else join.layer].append(join)
    for (line, _), joins in alike.items():
        yield from _found(recording, line, joins, limits)


def _joins(recording: Recording) -> Iterator[_Join]:
    names, of = recording.layered.names, recording.layered.of
    entries = [i for i, name in enumerate(names) if name.startswith(JOINING)]
    if len(entries) < 2:
        return
    barrier = recording.layered.among(i for i, n in enumerate(names) if n.startswith(_BARRIER))
    sides: dict[int, list[_Side]] = {}
    for entry in entries:
        side = _side(recording, np.flatnonzero(of == entry), barrier)
        for layer in np.unique(of[side.joined]).tolist():
            joined = side.joined[of[side.joined] == layer]
            sides.setdefault(layer, []).append(side._replace(joined=joined))
    for layer, found in sides.items():
        if len(found) == 2:
            yield _Join(names[layer], *sorted(found, key=lambda side: side.nbytes))


def _side(recording: Recording, rows: Ints, barrier: Bools) -> _Side:
    needs = recording.timeline.depends
    users = needs.user[np.isin(needs.on, rows)]
    barriers = np.unique(users[barrier[users]])
    joined = np.unique(needs.user[np.isin(needs.on, barriers)])
    inputs = np.unique(needs.on[np.isin(needs.user, rows)])
    layered = recording.layered
    layers = frozenset(layered.names[i] for i in np.unique(layered.of[inputs]).tolist())
    nbytes = int(recording.timeline.runs["nbytes"][inputs].sum())
    return _Side(nbytes, layers, rows, barriers, joined)


def _found(
    recording: Recording, line: Line, joins: list[_Join], limits: Limits
) -> Iterator[Finding]:
    sides = [side for join in joins for side in (join.small, join.large)]
    gone = np.unique(np.concatenate([run for side in sides for run in (side.rows, side.barriers)]))
    cost = cost_of(recording, runs=gone.tolist())
    if cost < limits["share"] * recording.wall:
        return
    saved = _saving(recording, gone, np.unique(np.concatenate([side.joined for side in sides])))
    layer, small, large = max(joins, key=lambda join: join.small.nbytes)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The join{made_at(line.file, line.line)} shuffles {size(large.nbytes)} to join it "
            f"with {size(small.nbytes)}{_times(len(joins))}: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "small_bytes": small.nbytes,
            "large_bytes": large.nbytes,
            "partitions": len(small.rows),
            "joins": len(joins),
            "tasks": len(gone),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(size(small.nbytes), line),
        where=Where(line.file, line.line, "", layer, key_split(layer)),
        cause=f"layer:{layer}",
        also=frozenset(_shuffled_again(recording, joins)),
    )


def _shuffled_again(recording: Recording, joins: list[_Join]) -> Iterator[str]:
    """The causes of shuffles of the same again that are none without these joins' shuffles."""
    gone = Counter(min(join.large.layers) for join in joins)
    for repeated in Reshuffles(recording).all:
        source = min(repeated.sources)
        if gone[source] and repeated.times - gone[source] <= 1:
            yield f"shuffle:{key_split(source)}"


def _times(joins: int) -> str:
    return f", {joins:,} times" if joins > 1 else ""


def _saving(recording: Recording, gone: Ints, joined: Ints) -> tuple[float, float]:
    """Without the shuffle; at most, the join's tasks take less too: they need not read it."""
    part = np.concatenate([np.ones(len(gone)), np.full(len(joined), 1 - _LEFT)])
    low = recording.replay.saving(without(recording, gone))[0]
    high = recording.replay.saving(without(recording, np.concatenate([gone, joined]), part))[1]
    return min(low, high), high


def _fix(small: str, line: Line) -> Fix:
    made = made_at(line.file, line.line, " in the join at ")
    return Fix(_TEXT, _CODE.format(small=small, made=made))


RULE = Rule(
    id="broadcast-join",
    stage=Stage.COMMUNICATION,
    summary="A join shuffles both of its sides, though one is small enough to go everywhere.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "bytes": Limit(100e6, "on the small side: each worker holds it whole"),
        "times": Limit(10.0, "as much on the other side: else it gains little"),
        "share": Limit(0.03, "of the wall time in the shuffle: less is not worth a change"),
    },
)
