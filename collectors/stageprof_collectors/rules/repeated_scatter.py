"""The same object is sent to the workers again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import introduced, made_at, of_wall, word
from stageprof_collectors.findings.quantity import size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.scatter import Scattered, scattered
from stageprof_collectors.replay.relief import Covered, Interval
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.replay.toll import toll
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Seconds by which a sum may be off that is only a first look.
_ROUNDED: Final = 1e-6
_TEXT: Final = (
    "If it is not changed in between, scatter it once, before the loop, and give the same future "
    "to all tasks: each worker that needs it fetches it once. What the workers can read or make "
    "themselves is better made in a task: then it does not go through your program at all."
)
_CODE: Final = """\
from dask.distributed import get_client

{name} = get_client().scatter({name})  # once: the same future for all tasks"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each object whose later ways take a share of the run."""
    times: defaultdict[tuple[int, int], dict[Interval, Scattered]] = defaultdict(dict)
    for each in scattered(recording):
        times[each.who].setdefault(each.call, each)
    least = limits["share"] * recording.wall
    waited = Covered((s.start, s.stop) for s in recording.path_steps if s.run == -1)

    @cache  # what is scattered together is so in the same calls
    def gone(again: tuple[Interval, ...]) -> tuple[float, tuple[float, float]]:
        if waited.of(*np.array(again).T).sum() / 1e9 < least - _ROUNDED:
            return 0.0, (0.0, 0.0)
        change = _without(again)
        return toll(recording, change), recording.replay.saving(change)

    for calls in times.values():
        first, *again = calls
        cost, saved = gone(tuple(again)) if again else (0.0, (0.0, 0.0))
        if cost and cost >= least:
            yield _finding(recording, calls[first], len(calls), cost, saved)


def _without(again: Sequence[Interval]) -> Change:
    """It is sent the first time only; what else went in the same call goes along with it."""
    calls = Covered(again)
    return Change(serial=lambda step: 1.0 - calls.part(step))


def _finding(
    recording: Recording, thing: Scattered, times: int, cost: float, saved: tuple[float, float]
) -> Finding:
    made = made_at(thing.file, thing.line, " made at ")
    name = introduced(
        thing.type, thing.variable, made, of=f" of {size(thing.nbytes)}", unnamed="unnamed"
    )
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{name} is scattered {times:,} times"
            f"{made_at(thing.used_file, thing.used_line)}: {of_wall(cost, recording)}"
        ),
        stage=Stage.COMMUNICATION,
        evidence={
            "times": times,
            "object_bytes": thing.nbytes,
            "sent_again_bytes": thing.nbytes * (times - 1),
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
