"""A recording: what was seen of a run, and every table that can be asked of it.

The same object while the run goes on and from a file. Times in its tables are seconds (`_s`)
from the region's start, sizes are bytes. Tables are made when asked for and kept.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from stageprof_collectors.account.computations import computations, with_work
from stageprof_collectors.account.groups import Groups
from stageprof_collectors.account.timeline import Columns
from stageprof_collectors.evidence import Evidence
from stageprof_collectors.findings.crowd import Crowds
from stageprof_collectors.findings.diagnosis import Diagnosis, diagnose
from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.findings import findings_frame
from stageprof_collectors.findings.innocence import innocents
from stageprof_collectors.findings.recomputed import recomputed
from stageprof_collectors.findings.settings import DEFAULTS, Settings
from stageprof_collectors.garbage import no_collection
from stageprof_collectors.profiles.flame import Flame, flame
from stageprof_collectors.profiles.holders import gil
from stageprof_collectors.profiles.native import looked
from stageprof_collectors.replay.replay import Replay
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables import places
from stageprof_collectors.tables.coverage import coverage
from stageprof_collectors.tables.layers import layers, lines
from stageprof_collectors.tables.objects import objects
from stageprof_collectors.tables.path import path
from stageprof_collectors.tables.tasks import tasks
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from pyinstrument.session import Session


class Recording(Evidence):
    """A run as it was recorded."""

    def __init__(self, store: Store, path: str | None = None) -> None:
        super().__init__(store)
        #: the file it came from or goes to, if any
        self.path = path
        #: what the rules said of it, by the settings that they went by
        self.diagnoses: dict[Settings, Diagnosis] = {}
        #: seconds that the run would be shorter without a stage, at most; see `innocence.at_most`
        self.bounds: dict[Stage, float] = {}

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, max_memory: int | None = None) -> Self:
        """The recording in a file.

        Args:
            path: of the file.
            max_memory: how much it may take, bytes; None: what a sound one of its size may take,
                so that a small file that claims much harms nobody.

        Raises:
            NotARecording, NewerRecording, DamagedRecording: see `errors`.
        """
        return cls(Store.open(path, max_memory=max_memory), os.fspath(path))

    def forget(self) -> None:
        """Let go of what tables were made from, and of what lies on disk (see `Store.spill`).

        Who asks for it again has it made, or read, anew.
        """
        for name in ("replay", "crowds", "groups"):
            self.__dict__.pop(name, None)
        super().forget()

    # -- what several tables are made from ----------------------------------------------------

    @cached_property
    def replay(self) -> Replay:
        """Predicts what a change would save."""
        return Replay(self)

    @cached_property
    def crowds(self) -> Crowds:
        """Runs by what they are where their number matters."""
        return Crowds(self)

    @cached_property
    def groups(self) -> Groups:
        """Which layer and line each run belongs to."""
        return Groups(self)

    @cached_property
    def looked(self) -> Columns:
        """Looks at stacks: FLAME rows with the `share` of each, C frames where they were seen."""
        return looked(self)

    @cached_property
    def worker_names(self) -> dict[str, str]:
        """The names of workers by their address; "" for those that have none."""
        frame = self.workers()
        return dict(zip(frame["worker"], frame["name"], strict=True))

    # -- tables ---------------------------------------------------------------------------------

    def stages(self) -> pd.DataFrame:
        """Where the wall time went: the six stages, `outside` and `unexplained`.

        Index: stage. Columns: wall_s, share, busy_s, events, bytes; wall_s sums to `wall`.
        """
        return self.account.stages()

    def steps(self) -> pd.DataFrame:
        """The same for each (stage, step, role), costliest first."""
        return self.account.steps()

    def places(self) -> pd.DataFrame:
        """The same for each process, costliest first.

        Columns: place, role, host, pid, wall_s (which sum to `wall`), busy_s (which sum to those of
        `stages()`), construction_s ... execution_s (of busy_s), waited_s (by its tasks). Of what
        was at a place that is not known, place is "".
        """
        return places.places(self)

    def critical_path(self) -> pd.DataFrame:
        """The segments of the blocking account, in order.

        Columns: start_s, stop_s, seconds, stage, step, place, key.
        """
        return path(self)

    def tasks(self) -> pd.DataFrame:
        """One row per run of a task, in the order in which they were assigned.

        Columns: key, prefix, layer, worker, thread, assigned_s, start_s, stop_s, duration_s,
        nbytes, cpu_s, gil_share (of its time it waited for the GIL), gil_hold_s, gil_wait_s (NaN
        where nobody watched), status, run.
        """
        return tasks(self)

    def layers(self) -> pd.DataFrame:
        """One row per layer and user line, costliest first.

        Columns: layer, prefix, tasks, file, line (that made it), wall_s (of the critical path),
        construction_s ... execution_s (busy seconds of the six stages, which sum to those of
        `stages()`), before_first_task_s (what of wall_s passed before the first task of the
        layer's computation began), bytes (of its tasks' results).

        A layer without tasks was made at its line and then fused into another or optimized away.
        The last row, if its layer is "", is what belongs to no layer: see `layers.py`. Tasks that
        Dask fused are of the layer that their key names.
        """
        return self._layers.copy()

    def lines(self) -> pd.DataFrame:
        """The same for each line of the user's.

        Columns: file, line, layers (how many it made), tasks, wall_s, construction_s ...
        execution_s, before_first_task_s, bytes. The last row, if its file is "", is what no line
        is known for.
        """
        return lines(self._layers)

    @cached_property
    def _layers(self) -> pd.DataFrame:
        with no_collection():
            return layers(self)

    def computations(self) -> pd.DataFrame:
        """One row per graph handed over.

        When, by which line, time to its first task, tasks, bytes, and the wall seconds of each
        stage while it ran; see `computations.computations` for the columns.
        """
        return self._computations.copy()

    @cached_property
    def _computations(self) -> pd.DataFrame:
        return with_work(self, self.handed_over)

    @cached_property
    def handed_over(self) -> pd.DataFrame:
        """The same without the work for each, which takes as long as that for each layer."""
        return computations(self)

    def objects(self) -> pd.DataFrame:
        """Embedded objects: what of the user's data travelled inside graphs, costliest first.

        One row per object and graph: those of 100 kB or more, or of 10 ms or more of pickling.

        Columns: number (the same object in several graphs has one), type, nbytes (of one copy),
        copies (in the graph), pieces (into which it was cut), tasks (that held it), variable,
        file, line (where it was made; "" and 0 if unknown), how (the way from the layer to it),
        layer, used_file, used_line (where that layer was made), graph_bytes, sent_bytes (to
        workers, inside tasks), dump_s (client), load_s (scheduler), task_dump_s (scheduler),
        task_load_s (workers), total_s, computation (row of `computations()`, -1 if unknown),
        layers (all that hold it). The last three hops are shared out; see `objects.py`.
        """
        return objects(self)

    def samples(self) -> pd.DataFrame:
        """Memory, CPU, network, disk, GIL contention and loop lag over time.

        Columns: t_s, role, place, name, value.
        """
        return places.samples(self)

    def workers(self) -> pd.DataFrame:
        """One row per worker.

        Columns: worker, name, host, pid, threads, cpus, memory_limit, instrumented, reason (why
        not), left, tasks, busy_s, batches_lost, offset_s (of its clock), offset_error_s.
        """
        return self._workers.copy()

    @cached_property
    def _workers(self) -> pd.DataFrame:
        return places.workers(self)

    def gil(self) -> pd.DataFrame:
        """Who held the GIL of each process, and who waited for it, most holding first.

        One row per process, thread, task prefix ("" between tasks) and line of code.

        Columns: place, thread ("event loop", or its name), prefix, function, file, line ("" and 0
        if unknown), hold_s, wait_s, caused_s (what others waited meanwhile, all together), source
        (what named the line: "py-spy", or "looks" from within the process). What is none of the
        user's or Dask's has "stageprof itself" as its function, and no line.
        """
        return gil(self)

    def flame(
        self, stage: str | None = None, prefix: str | None = None, worker: str | None = None
    ) -> Flame:
        """What threads were seen doing, as stacks with seconds; see `flame.Flame` and profiles.md.

        Args:
            stage: that of the step at which they were: "construction" for the region's thread,
                "execution" for tasks, "scheduling" for the scheduler's loop, ...
            prefix: of the tasks' keys.
            worker: its address or name.

        Raises:
            UsageError: there is no such stage, prefix or worker.
        """
        return flame(self, stage, prefix, worker)

    def profile(self, stage: str = "construction") -> Session:
        """What threads were seen doing at a stage, for pyinstrument's renderers.

        Returns:
            A `pyinstrument.session.Session`; no profiler is run for it.

        Raises:
            NoLooks: nothing was seen at that stage.
            UsageError: there is no such stage.
        """
        from stageprof_collectors.profiles.session import session

        return session(self, stage)

    def recomputed(self) -> pd.DataFrame:
        """Work done twice: runs that were lost, failed, or made a key that was made before.

        Columns: key, layer, runs, seconds (all but the last good run), reason.
        """
        return recomputed(self)

    def findings(self, settings: Settings = DEFAULTS) -> list[Finding]:
        """What to change, best first; see `finding.Finding` for the fields."""
        return diagnose(self, settings)

    def findings_frame(self, settings: Settings = DEFAULTS) -> pd.DataFrame:
        """One row per finding, best first.

        Columns: rule, severity, headline, cost_s, saving_low_s, saving_high_s, file, line,
        variable, layer, prefix, stage ("" if several), link.
        """
        return findings_frame(diagnose(self, settings))

    def innocence(self, settings: Settings = DEFAULTS) -> list[str]:
        """A sentence for each popular suspect that costs little, with its bound."""
        return innocents(self, settings)

    def coverage(self) -> dict[str, Any]:
        """What was seen and what was not.

        Events stored, dropped by reason, sources lost, probes disabled, workers instrumented and
        seen, own overhead in seconds.
        """
        return coverage(self)
