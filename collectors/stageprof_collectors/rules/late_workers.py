"""The first tasks began before all workers were there; the late ones found little left to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import Crew
from stageprof_runtime.stage import OUTSIDE, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT = (
    "Wait for the workers before you hand over work: tasks that have begun, and data that is in "
    "place, stay where they are. The wait itself takes as long as the workers need ({wait} here): "
    "ask for all of them when you start the cluster and do meanwhile what needs no workers, or "
    "start it once for several runs."
)
_CODE = """\
from distributed import Client

client = Client.current()  # yours
client.wait_for_workers({workers})"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for all workers that came too late."""
    crew = Crew(recording)
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
        fix=Fix(_TEXT.format(wait=seconds(wait)), _CODE.format(workers=workers)),
        where=Where(file, line),
        cause="late workers",
    )


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
    summary="The run began before all of its workers were there.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "threads": Limit(0.2, "of all threads that came late: fewer change little"),
        "share": Limit(0.03, "of the wall time that passed without them: less is not worth it"),
    },
)
