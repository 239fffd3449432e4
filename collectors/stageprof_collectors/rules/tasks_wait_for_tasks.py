"""Tasks wait for tasks that they launched, and hold their threads meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.course import Course
from stageprof_collectors.account.groups import Row
from stageprof_collectors.account.intervals import clip, innermost, length
from stageprof_collectors.account.timeline import LOCAL
from stageprof_collectors.account.underway import ENDED
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.tables.crew import Crew
from stageprof_collectors.text import number
from stageprof_runtime.stage import Stage
from stageprof_runtime.states import LEFT

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Have the task leave its thread to others while it waits (the code below). {stuck}Where you "
    "can tell beforehand what is to be computed, hand it over from your program in place of from "
    "tasks: then nobody waits in a thread, and Dask sees what needs what."
)
_STUCK: Final = "More threads only put it off, until as many tasks wait. "
_CODE: Final = """\
from distributed import worker_client

def {name}(items):
    with worker_client() as client:  # not get_client(): others have its thread
        futures = client.map(work, items)  # what you launch
        return client.gather(futures)  # and wait for"""


class Launching:
    """Runs that launched others, and the threads that they held while they waited for them."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._t = recording.timeline

    @cached_property
    def threads(self) -> int:
        """Those of all workers."""
        return Crew(self.recording).threads

    @cached_property
    def of_graph(self) -> dict[int, int]:
        """The row of the run that launched each graph; of those that kept their threads."""
        runs, gone = self._t.runs, self._gone
        found = {}
        for index, graph in enumerate(self._t.graphs):
            row = self._t.run_of(graph.parent, graph.place) if graph.parent >= 0 else -1
            if row >= 0 and runs["run"][row] < LOCAL and int(runs["run"][row]) not in gone:
                found[index] = row
        return found

    @cached_property
    def _gone(self) -> set[int]:
        """The numbers of the runs that left their threads."""
        return {number(label) for _, _, label in self._t.marks(LEFT)}

    @cached_property
    def launched(self) -> dict[int, int]:
        """The row of each run that was launched so, and of the one that did."""
        graphs = self._t.graph_rows
        rows = np.flatnonzero(np.isin(graphs, list(self.of_graph)))
        return {row: self.of_graph[int(graphs[row])] for row in rows.tolist()}

    @cached_property
    def held(self) -> dict[int, int]:
        """How long each of them waited, ns, while others that were assigned could not begin."""
        launching, runs = Course(self.recording).launching, self._t.runs
        waiting = innermost(
            (int(runs["assigned"][row]), int(runs["start"][row]), None) for row in self.launched
        )
        return {
            row: sum(length(clip(waiting, block.start, block.stop)) for block in launching[row])
            for row in set(self.of_graph.values())
            if row in launching
        }

    @cached_property
    def stuck(self) -> tuple[int, int, list[int]]:
        """From when to when nothing went on, ns, and the runs that then held all threads."""
        runs, region = self._t.runs, self._t.region
        done = np.isin(runs["status"], ENDED)
        holding = {row for row in self.of_graph.values() if not done[row]}
        came = [g.taken for i, g in enumerate(self._t.graphs) if self.of_graph.get(i) in holding]
        last = max([region.start, *came, *runs["finished"][done].tolist()])
        ends = [int(runs["finished"][row]) for row in holding if runs["finished"][row] > last]
        stop = min([region.stop, *ends])
        full = 0 < self.threads <= len(holding) and last < stop
        return (last, stop, sorted(holding)) if full else (0, 0, [])


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One where all threads were held for ever, else one where some were."""
    launching = Launching(recording)
    if not launching.of_graph:
        return
    start, stop, rows = launching.stuck
    if stop - start >= limits["stuck_s"] * 1e9:
        yield _finding(launching, rows, (stop - start) / 1e9, stuck=True)
        return
    held_s = sum(launching.held.values()) / 1e9
    saving = held_s / max(1, launching.threads)
    if saving >= limits["share"] * recording.wall:
        yield _finding(launching, sorted(launching.held), held_s, stuck=False)


def _finding(launching: Launching, rows: list[int], held_s: float, *, stuck: bool) -> Finding:
    recording = launching.recording
    row, child = recording.groups.most(rows), _child(launching, rows)
    threads = launching.threads
    most = held_s if stuck else held_s / max(1, threads)
    saved = (most if stuck else most / 2, most)
    return Finding(
        rule=RULE.id,
        severity=Severity.CRITICAL if stuck else severity(saved, recording.wall),
        headline=_headline(recording, len(rows), row, child, held_s, stuck=stuck),
        stage=Stage.EXECUTION,
        evidence={
            "tasks": len(rows),
            "launched": len(launching.launched),
            "threads": threads,
            "held_s": held_s,
        },
        cost_s=most,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(stuck=_STUCK if stuck else ""),
            _CODE.format(name=word(row.prefix, "your_task")),
        ),
        where=Where(row.file, row.line, "", row.layer, row.prefix),
        cause=f"launching:{row.prefix}",
    )


def _headline(
    recording: Recording, tasks: int, row: Row, child: str, held_s: float, *, stuck: bool
) -> str:
    who = f"{count(tasks, 'task')} of `{row.prefix}`{made_at(row.file, row.line)}"
    what = f"`{child}`" if child else "tasks that they launched"
    if stuck:
        return (
            f"{who} hold all threads and wait for {what}, for which none is left: nothing goes on "
            f"for {of_wall(held_s, recording)}"
        )
    hold = "holds its thread" if tasks == 1 else "hold their threads"
    return f"{who} {hold} for {seconds(held_s)} and wait for {what}, which wait for a thread"


def _child(launching: Launching, rows: list[int]) -> str:
    """The prefix of most of the tasks that these launched; "" if none was seen."""
    parents = set(rows)
    mine = [child for child, parent in launching.launched.items() if parent in parents]
    return launching.recording.groups.most(mine).prefix if mine else ""


RULE = Rule(
    id="tasks-wait-for-tasks",
    stage=Stage.EXECUTION,
    summary="Tasks wait for tasks that they launched, and hold their threads meanwhile.",
    find=find,
    ground=Ground.SPREAD,
    limits={
        "stuck_s": Limit(5, "in which nothing ends though all threads are held: tasks may be long"),
        "share": Limit(0.05, "of the wall time, all threads taken together: less is not worth it"),
    },
)
