"""What every face says of a recording first: what to change, and where the time went.

Facts only, with times in seconds and texts as they were recorded; the renderers make them safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from stageprof_collectors.account.attempts import ran
from stageprof_collectors.account.first_task import FirstTask, first_task
from stageprof_collectors.findings.diagnosis import NOTHING, Diagnosis, Progress, examine
from stageprof_collectors.findings.finding import Finding, Severity
from stageprof_collectors.findings.hotspot import MOSTLY, hotspots
from stageprof_collectors.findings.innocence import gil_verdict
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.missing import lost, missing
from stageprof_collectors.others import others
from stageprof_collectors.profiles.lines import own_lines
from stageprof_collectors.recording import Recording
from stageprof_collectors.tables.tasks import names as layers_and_prefixes
from stageprof_runtime.stage import Stage

#: How many steps and layers a summary names.
TOP = 3
#: A diagnosis that takes longer than this is worth a word: somebody waited for it.
SLOW_S = 2.0
#: The step whose line is named.
COMPUTE = "compute"
#: What a line of the user's own is called among the steps, and from which share on it is named.
OWN, OWN_SHARE = "your code", 0.05


@dataclass(frozen=True)
class StageLine:
    """One of the eight lines of the account."""

    stage: Stage
    wall_s: float
    share: float
    busy_s: float


@dataclass(frozen=True)
class StepLine:
    """A step that the caller waited for, or a line of its own (`OWN`), and where it ran."""

    stage: Stage
    step: str
    wall_s: float
    share: float
    where: str


@dataclass(frozen=True)
class LayerLine:
    """The layers of a prefix that a line of the user's code made ("" if unknown)."""

    layer: str
    line: str
    tasks: int
    wall_s: float


@dataclass(frozen=True)
class Summary:
    """The facts of one recording, in the order in which they are shown."""

    label: str
    wall_s: float
    facts: tuple[str, ...]
    #: best first; all of them, also those that are mere notes
    findings: tuple[Finding, ...]
    innocents: tuple[str, ...]
    #: rules that were switched off
    off: tuple[str, ...]
    stages: tuple[StageLine, ...]
    steps: tuple[StepLine, ...]
    first: FirstTask | None
    layers: tuple[LayerLine, ...]
    coverage: str
    problems: tuple[str, ...]
    incomplete: str
    file: str
    #: whether the GIL is to blame, in a line; "" if no task ran
    gil: str = ""
    #: what of the run was not seen, and why, a phrase each
    missing: tuple[str, ...] = ()
    #: what to say instead where there is nothing to change; "" for the usual
    said: str = ""
    #: which tasks failed or were retried, and whether the program did, a sentence each
    failures: tuple[str, ...] = ()

    @property
    def changes(self) -> tuple[Finding, ...]:
        """The findings that are worth acting on."""
        return tuple(f for f in self.findings if f.severity != Severity.NOTE)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Those that are true but save little."""
        return tuple(f for f in self.findings if f.severity == Severity.NOTE)

    @property
    def verdict(self) -> str:
        """What to say where none of them is: the bound, if that rule was asked."""
        last = self.findings[-1:]
        bound = last[0].headline if last and last[0].rule == NOTHING else ""
        return (
            self.said
            or bound
            or "Nothing to change: no rule that is on found anything above a note"
        )


def summarize(
    recording: Recording,
    settings: Settings = DEFAULTS,
    *,
    problem: str = "",
    progress: Progress | None = None,
) -> Summary:
    """The facts of a recording.

    Args:
        recording: what to sum up.
        settings: of the diagnosis.
        problem: what is wrong besides, "" if nothing is.
        progress: told how far the diagnosis is.
    """
    diagnosis = examine(recording, settings, progress=progress)
    return Summary(
        label=str(recording.store.header.get("label") or "recording"),
        wall_s=recording.wall,
        facts=_facts(recording),
        findings=diagnosis.findings,
        innocents=tuple(recording.innocence(settings)),
        off=diagnosis.off,
        stages=_stages(recording),
        steps=_steps(recording),
        first=first_task(recording),
        layers=_layers(recording),
        coverage=_coverage(recording, diagnosis),
        problems=_problems(recording, diagnosis, problem),
        incomplete=incomplete(recording),
        file=recording.path or "",
        gil=_gil(recording, settings, diagnosis),
        missing=missing(recording.coverage()),
        failures=recording.failures.said,
    )


def incomplete(recording: Recording) -> str:
    """What is missing of a recording that did not end in good order; "" if nothing is."""
    if recording.complete:
        return ""
    coverage = recording.coverage()
    events, reason = count(coverage["events"], "event"), coverage["incomplete_reason"]
    return f"recording incomplete: {events} up to {seconds(recording.wall)} ({reason})"


def _gil(recording: Recording, settings: Settings, diagnosis: Diagnosis) -> str:
    verdict = gil_verdict(recording, settings, diagnosis.findings)
    return verdict.said if verdict else ""


def _facts(recording: Recording) -> tuple[str, ...]:
    facts = [f"{seconds(recording.wall)} wall time"]
    tasks, computations = int(ran(recording.timeline.runs).sum()), len(recording.handed_over)
    facts.append(f"{count(tasks, 'task')} in {count(computations, 'computation')}")
    if len(recording.workers()):
        facts.append(count(len(recording.workers()), "worker"))
    load = others(recording)
    if load is not None and load.many:
        facts.append(load.said)
    return tuple(facts)


def _stages(recording: Recording) -> tuple[StageLine, ...]:
    frame = recording.stages()
    rows = zip(frame.index, frame["wall_s"], frame["share"], frame["busy_s"], strict=True)
    return tuple(StageLine(Stage(s), float(w), float(p), float(b)) for s, w, p, b in rows)


def _steps(recording: Recording) -> tuple[StepLine, ...]:
    frame = recording.steps()
    frame = frame[(frame["step"] != "") & (frame["wall_s"] > 0)].head(TOP)
    path = recording.critical_path()
    rows = ((row, _where(recording, path, row)) for row in frame.to_dict("records"))
    steps = [
        StepLine(Stage(row["stage"]), row["step"], row["wall_s"], row["share"], where)
        for row, where in rows
    ]
    both = [*steps, *_own(recording)]
    return tuple(sorted(both, key=lambda line: -line.wall_s)[:TOP])


def _own(recording: Recording) -> list[StepLine]:
    """The line of the user's own code that took most, if that is a good part of the run."""
    lines, wall = own_lines(recording)[:1], recording.wall
    return [
        StepLine(Stage.OUTSIDE, OWN, one.seconds, one.seconds / wall, at(one.file, one.line))
        for one in lines
        if one.seconds >= OWN_SHARE * wall
    ]


def _where(recording: Recording, path: pd.DataFrame, row: dict[Any, Any]) -> str:
    """Which process, or how many workers; and what most of it was for."""
    path = path[(path["stage"] == row["stage"]) & (path["step"] == row["step"])]
    where = str(row["role"] or "a worker")  # one that did not tell: its process is not known
    if where == "worker":
        elsewhere = path["place"].isin(("client", "scheduler"))
        where = _which(recording, path["place"][~elsewhere].unique().tolist())
    return where + ((_at(recording) if row["step"] == COMPUTE else "") or _mostly(path))


def _which(recording: Recording, places: list[str]) -> str:
    """The one worker by its name, several by their number."""
    if len(places) != 1:
        return count(len(places), "worker")
    known = recording.workers()
    names = known["name"][known["worker"] == places[0]].tolist()
    return f"worker {names[0] if names and names[0] else places[0]}"


def _at(recording: Recording) -> str:
    """The line of the user's at which tasks were seen for most of their time, if there is one."""
    first = hotspots(recording)[:1]
    return "".join(f", mostly {at(s.file, s.line)}" for s in first if s.part > MOSTLY)


def _mostly(path: pd.DataFrame) -> str:
    keyed = path[path["key"] != ""]
    if not len(keyed):
        return ""
    _, prefixes = layers_and_prefixes(keyed["key"].tolist())
    sums = keyed["seconds"].groupby(np.array(prefixes, dtype=object)).sum()
    main, part = str(sums.idxmax()), float(sums.max() / path["seconds"].sum())
    return f", mostly {main}" if part > 0.5 else ""


def _layers(recording: Recording) -> tuple[LayerLine, ...]:
    """A loop makes layers of one prefix at one line, which are one thing to its user."""
    frame = recording.layers()
    keyed = frame[frame["layer"] != ""].groupby(["prefix", "file", "line"], sort=False)
    sums = keyed[["tasks", "wall_s"]].sum().reset_index()
    rows = sums.sort_values("wall_s", ascending=False, kind="stable").head(TOP).to_dict("records")
    return tuple(
        LayerLine(str(r["prefix"]), at(r["file"], r["line"]), int(r["tasks"]), float(r["wall_s"]))
        for r in rows
    )


def _problems(recording: Recording, diagnosis: Diagnosis, problem: str) -> tuple[str, ...]:
    failed = (f"rule failed: {why}" for why in diagnosis.failed)
    return (*recording.coverage()["problems"], *failed, *filter(None, [problem]))


def _coverage(recording: Recording, diagnosis: Diagnosis) -> str:
    c = recording.coverage()
    seen = [count(c["events"], "event"), lost(c)]
    if c["workers"]:
        seen.append(f"{c['instrumented']}/{c['workers']} workers seen")
    slow = f"; diagnosis {seconds(diagnosis.seconds)}" if diagnosis.seconds > SLOW_S else ""
    return f"{', '.join(seen)}; overhead {seconds(c['overhead_s'])} CPU{slow}"
