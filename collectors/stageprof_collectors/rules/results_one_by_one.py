"""Results that are there already are fetched one at a time, each by a round trip of its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.account.block import STILL, Block
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.tables.wanted import wanted
from stageprof_collectors.text import line_of, number
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: Of a round trip for one so much is left for each of many, at least and at most: one in twenty
#: where they are gathered at once, one in five where they come as they are done.
_LEFT: Final = (0.05, 0.2)
#: Of calls beside which the cluster computed at most so much is saved: it would still be computing,
#: though sooner done, for a round trip takes the time of its scheduler and workers as well.
_BESIDE: Final = 0.5
#: Bytes in a second: theirs is time that no other way of fetching saves.
_FASTEST, _SLOWEST = 1e9, 1e8
_TEXT: Final = (
    "Fetch them together: `client.gather` asks each worker once for all that it has. Where you go "
    "on with each as it comes, let `as_completed` bring the results: it fetches those that are "
    "done in one go."
)
_CODE: Final = """\
from distributed import Client, as_completed

results = Client.current().gather(futures)  # in place of future.result() for each of them
# or, for those that are done:
for future, result in as_completed(futures, with_results=True):
    ...  # what you do with it"""


class Fetched(NamedTuple):
    """Calls that fetched a result of an earlier hand-over.

    Attributes:
        rows: the runs that made them.
        ns: from when the result was known to be there until the caller had it.
        start: when that began.
    """

    rows: Ints
    ns: Ints
    start: Ints


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all that the region's thread fetched so."""
    if len(recording.store.table("block")["start"]) < limits["calls"]:
        return
    calls = _calls(recording)
    cost = sum(block.stop - _there(block) for block in calls) / 1e9
    if len(calls) < limits["calls"] or cost < limits["share"] * recording.wall:
        return
    fetched = _fetched(recording, calls)
    if len(fetched.rows) >= limits["calls"]:
        yield _finding(recording, fetched)


def _calls(recording: Recording) -> list[Block]:
    """Those of the region's thread that fetched."""
    region = recording.timeline.region
    blocks = recording.walk.blocks.get((region.place, region.lane), [])
    return [block for block in blocks if block.gather and block.awaited != STILL]


def _there(block: Block) -> int:
    """Since when the caller waited for nothing but the result's way."""
    return min(max(block.start, block.awaited), block.stop)


def _fetched(recording: Recording, calls: list[Block]) -> Fetched:
    """What is known of the results that these calls fetched, but for those of a `compute`.

    It fetches what was handed over last, once.
    """
    made, handed = _made(recording), _handed(recording)
    latest = np.searchsorted(handed, [block.start for block in calls], side="right") - 1
    known, seen = [], set()
    for block, last in zip(calls, latest.tolist(), strict=True):
        row, submitted = made.get(block.key, (-1, 0))
        computed = last >= 0 and submitted == handed[last] and submitted not in seen
        seen.add(submitted)
        if row >= 0 and not computed:
            known.append((row, block.stop - _there(block), _there(block)))
    return Fetched(*np.array(known, np.int64).reshape(-1, 3).T)


def _made(recording: Recording) -> dict[str, tuple[int, int]]:
    """The run that made each result that a client asked for, and when it was handed over."""
    timeline, asked = recording.timeline, wanted(recording)
    keys = recording.store.keys(timeline.runs["key"][asked])
    when = [graph.submitted for graph in timeline.graphs]
    graphs = timeline.graph_rows[asked].tolist()
    submitted = (when[graph] if graph >= 0 else 0 for graph in graphs)
    return dict(zip(keys, zip(asked.tolist(), submitted, strict=True), strict=True))


def _handed(recording: Recording) -> Ints:
    """When the region's thread handed graphs over, in order."""
    region, table = recording.timeline.region, recording.timeline.read("submit", "t")
    mine = (table["place"] == region.place) & (table["thread"] == region.lane)
    return np.sort(table["t"][mine])


def _finding(recording: Recording, fetched: Fetched) -> Finding:
    row, runs = recording.groups.most(fetched.rows), recording.timeline.runs
    cost, saved = float(fetched.ns.sum()) / 1e9, _saving(recording, fetched)
    file, line = _line(recording)
    each, many = float(np.median(fetched.ns)) / 1e9, len(fetched.rows)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{many:,} results of `{row.prefix}` are fetched one by one{made_at(file, line)}, each "
            f"in {seconds(each)} though it is there: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "fetched": many,
            "each_s": each,
            "fetched_bytes": int(np.maximum(runs["nbytes"][fetched.rows], 0).sum()),
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, _CODE),
        where=Where(file or row.file, line or row.line, "", row.layer, row.prefix),
        cause=f"result:{row.layer}",
    )


def _saving(recording: Recording, fetched: Fetched) -> tuple[float, float]:
    """What came when all was computed, and at most half of the rest, beside which others worked."""
    runs = recording.timeline.runs
    nbytes = np.maximum(runs["nbytes"][fetched.rows], 0) * 1e9
    late = fetched.start >= runs["finished"][fetched.rows].max()
    least = fetched.ns * (1 - _LEFT[1]) - nbytes / _SLOWEST
    most = fetched.ns * (1 - _LEFT[0]) - nbytes / _FASTEST
    low = float(np.maximum(least, 0)[late].sum()) / 1e9
    high = float((np.maximum(most, 0) * np.where(late, 1.0, _BESIDE)).sum()) / 1e9
    return low, max(low, high)


def _line(recording: Recording) -> tuple[str, int]:
    """The user's line that fetched most often; ("", 0) if that is not known."""
    said = [label.partition(" ") for _, _, label in recording.timeline.marks("fetches")]
    if not said:
        return "", 0
    return line_of(max(said, key=lambda parts: number(parts[0]))[2])


RULE = Rule(
    id="results-one-by-one",
    stage=Stage.COMMUNICATION,
    summary="Results that are there are fetched one at a time, each by a round trip of its own.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "calls": Limit(20, "that fetched: fewer are written out in many a program"),
        "share": Limit(0.03, "of the wall time in them: less is not worth a change"),
    },
    # Which says to bring less, where the results are small.
    instead_of=frozenset({"large-result"}),
)
