"""The same object is sent to the workers again and again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.block import SCATTER
from stageprof_collectors.account.path import Step
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import introduced, made_at, of_wall, word
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.relief import Covered, Interval
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Scatter it once, before the loop, and give the same future to all tasks: each worker that "
    "needs it fetches it once. What the workers can read or make themselves is better made in a "
    "task: then it does not go through your program at all."
)
_CODE: Final = """\
from dask.distributed import get_client

{name} = get_client().scatter({name})  # once: the same future for all tasks"""


@dataclass
class Scattered:
    """An object that was scattered, and when each time but the first."""

    type: str
    variable: str
    file: str
    line: int
    used_file: str
    used_line: int
    nbytes: int
    times: int = 0
    again: list[Interval] = field(default_factory=list)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each object whose later ways take a share of the run."""
    for thing in _scattered(recording):
        change = _without(thing)
        cost = toll(recording, change)
        if cost >= limits["share"] * recording.wall:
            yield _finding(recording, thing, change, cost)


def _scattered(recording: Recording) -> list[Scattered]:
    """Objects that were scattered more than once."""
    if recording.store.rows("scatter") < 2:
        return []
    table, strings = recording.timeline.read("scatter", "t"), recording.store.strings
    calls = _calls(recording)
    starts = [start for start, _ in calls]
    found: dict[tuple[int, int], Scattered] = {}
    for row in np.argsort(table["t"], kind="stable"):
        values = {name: int(column[row]) for name, column in table.items()}
        texts = {name: strings[values[name]] for name in ("type", "variable", "file", "by_file")}
        thing = found.setdefault(
            (values["place"], values["number"]),
            Scattered(
                texts["type"], texts["variable"], texts["file"], values["line"],
                texts["by_file"], values["by_line"], values["nbytes"],
            ),
        )  # fmt: skip
        thing.times += 1
        at = bisect_left(starts, values["t"])
        if thing.times > 1 and at < len(calls):
            thing.again.append(calls[at])
    return [thing for thing in found.values() if thing.again]


def _calls(recording: Recording) -> list[Interval]:
    """When the region's client scattered."""
    mine = recording.timeline.region.place
    lanes = (lane for (place, _), lane in recording.walk.blocks.items() if place == mine)
    return sorted((b.start, b.stop) for lane in lanes for b in lane if b.call == SCATTER)


def _without(thing: Scattered) -> Change:
    """It is sent the first time only; what else went in the same call goes along with it."""
    again = Covered(thing.again)

    def left(step: Step) -> float:
        gone = float(again.of(np.array([step.start]), np.array([step.stop]))[0])
        return 1.0 - gone / max(step.stop - step.start, 1)

    return Change(serial=left)


def _finding(recording: Recording, thing: Scattered, change: Change, cost: float) -> Finding:
    saved = recording.replay.saving(change)
    made = made_at(thing.file, thing.line, " made at ")
    name = introduced(
        thing.type, thing.variable, made, of=f" of {size(thing.nbytes)}", unnamed="unnamed"
    )
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{name} is scattered {thing.times:,} times"
            f"{made_at(thing.used_file, thing.used_line)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "times": thing.times,
            "object_bytes": thing.nbytes,
            "sent_again_bytes": thing.nbytes * (thing.times - 1),
            "type": thing.type,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, _CODE.format(name=word(thing.variable, "thing"))),
        where=Where(thing.used_file, thing.used_line, thing.variable),
        cause=f"scatter:{thing.used_file}:{thing.used_line}:{thing.variable}",
    )


RULE = Rule(
    id="repeated-scatter",
    stage=Stage.COMMUNICATION,
    summary="The same object is scattered again and again.",
    find=find,
    ground=Ground.RECORDED,
    limits={"share": Limit(0.05, "of the wall time: less is not worth a change of the program")},
)
