"""Tasks that began before all workers were there, or had to wait because there was none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.intervals import clip, gaps, innermost
from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import OUTSIDE, STEP, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT = (
    "Wait for the workers before you hand over work: tasks that have begun, and data that is in "
    "place, stay where they are. The wait itself takes as long as the workers need ({wait} here): "
    "ask for all of them when you start the cluster and do meanwhile what needs no workers, or "
    "start it once for several runs. An adaptive cluster starts none before there is work: have it "
    "keep them, `cluster.adapt(minimum={workers}, ...)`, or the wait ends with an error."
)
_CODE = """\
from distributed import Client

client = Client.current()  # yours
client.wait_for_workers({workers}, timeout={patience})  # seconds"""


_PLACE: Final = STEP["place"]
_NONE: Final = (
    "Have workers there when there is work: starting one takes seconds. An adaptive cluster keeps "
    "some that have nothing to do with `minimum`, and all for longer with `wait_count` (the code "
    "below). If you scale it yourself, do so before you hand over work, and scale it down when the "
    "last is done."
)
_KEPT: Final = """\
# in place of your own call; wait_count: times that a worker is seen idle before it goes
cluster.adapt(minimum={workers}, maximum={workers}, wait_count=30)"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all workers that came too late, and one for the time in which there was none."""
    crew = Crew(recording)
    yield from _absent(recording, crew, limits["share"] * recording.wall)
    late = crew.late
    threads = sum(member.threads for member in late)
    if not late or threads < limits["threads"] * crew.threads:
        return
    began = crew.begun
    until = max(member.since for member in late)
    rows = [r for r in crew.rows.tolist() if recording.timeline.runs["start"][r] < until]
    cost = cost_of(recording, runs=rows)
    if cost >= limits["share"] * recording.wall:
        yield _finding(recording, crew, cost, (until - began) / 1e9)


def _patience(wait: float) -> int:
    """Seconds to wait at most: ten times what it took here, and a minute at least."""
    return max(60, 10 * round(wait))


def _finding(recording: Recording, crew: Crew, cost: float, wait: float) -> Finding:
    workers, late = len(crew.fullest), len(crew.late)
    there = recording.replay.saving(Change(workers=workers))
    # At best they are there when the tasks begin, for they were asked for before; at worst the
    # program stands still for as long as it has nothing else to do meanwhile.
    still = max(0.0, wait - _before(recording, crew.begun))
    saved = max(0.0, there[0] - still), there[1]
    file, line = _line(recording, crew.begun)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{late} of {count(workers, 'worker')} came up to {seconds(wait)} after the first task "
            f"had begun{made_at(file, line, ' for ')}: {of_wall(cost, recording)} passed with less "
            "than all of them"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "workers": workers,
            "workers_late": late,
            "threads": crew.threads,
            "threads_late": sum(member.threads for member in crew.late),
            "last_came_after_s": wait,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(wait=seconds(wait), workers=workers),
            _CODE.format(workers=workers, patience=_patience(wait)),
        ),
        where=Where(file, line),
        cause="late workers",
    )


def _absent(recording: Recording, crew: Crew, least: float) -> Iterator[Finding]:
    """While there was no worker, tasks waited to be given to one."""
    region, members = recording.timeline.region, crew.members
    there = innermost((member.since, member.until, None) for member in members)
    without = gaps(there, region.start, region.stop) if members else []
    none = [(a, b, None) for a, b in without]
    steps = [s for s in recording.path_steps if s.what.step == _PLACE]
    waits = [(a, b) for s in steps for a, b, _ in clip(none, s.start, s.stop)]
    cost = sum(b - a for a, b in waits) / 1e9
    if not waits or cost < least:
        return
    first = min(member.since for member in members)
    again = sum(b - a for a, b in waits if a > first) / 1e9
    row = _waiting(recording, max(waits, key=lambda wait: wait[1] - wait[0])[1])
    # Those that went by themselves may go again, whatever is asked for.
    lost = any(not loss.expected for loss in recording.incidents.losses)
    saved = 0.0 if lost else again, cost
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"There was no worker while tasks of `{row.prefix}`{made_at(row.file, row.line)} "
            f"waited for one: {of_wall(cost, recording)}"
        ),
        stage=Stage.SCHEDULING,
        evidence={
            "workers": len(crew.fullest),
            "workers_gone": sum(member.until < region.stop for member in members),
            "waited_s": cost,
            "waited_again_s": again,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_NONE, _KEPT.format(workers=len(crew.fullest))),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=shortage.gone(recording) if lost else "no worker",
    )


def _waiting(recording: Recording, until: int) -> Row:
    """The layer of the task that waited until then: the next that began."""
    steps = (s for s in recording.path_steps if s.run >= 0 and s.stop >= until)
    of_run, groups = recording.groups.of_run, recording.groups.rows
    return next((groups[int(of_run[s.run])] for s in steps), groups[0])


def _before(recording: Recording, began: int) -> float:
    """Seconds of the user's own code before the first task: workers may be started meanwhile."""
    own = [s for s in recording.path_steps if s.what.step == OUTSIDE and s.stop <= began]
    return sum(s.stop - s.start for s in own) / 1e9


def _line(recording: Recording, began: int) -> tuple[str, int]:
    """The user's line that handed over the graph whose tasks began first."""
    graphs = [g for g in recording.timeline.graphs if g.submit and g.submitted <= began]
    submit = graphs[-1].submit if graphs else None
    return (recording.store.strings[submit.file], submit.line) if submit else ("", 0)


RULE = Rule(
    id="late-workers",
    stage=Stage.EXECUTION,
    summary="The run began before all of its workers were there, or had none for a while.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "threads": Limit(0.2, "of all threads that came late: fewer change little"),
        "share": Limit(0.03, "of the wall time that passed without them: less is not worth it"),
    },
)
