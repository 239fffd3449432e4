"""The run once more, as it would have been without a cause of slowness.

A discrete simulation of the recorded tasks on the recorded threads: what a change takes away is
gone, and what then waits for something else waits for it. See `Replay.saving`.

The method is that of virtual speed-ups (Curtsinger and Berger, Coz, SOSP 2015) with the schedule
made anew instead of the program slowed down; two schedules bound it (see `simulation`). What it
cannot know: tasks that compete for a processor, a disk or the GIL take as long as they took,
however many of them there are. Neither does the scheduler get slower because it is asked more
often; but what it is known to do for its tasks, one after another, is the least that a run takes.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.account.path import Step
from stageprof_collectors.account.program import Program, length
from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.account.window import Windows
from stageprof_collectors.garbage import no_collection
from stageprof_collectors.replay.arrangement import together
from stageprof_collectors.replay.change import Change as Change
from stageprof_collectors.replay.change import Factor as Factor
from stageprof_collectors.replay.change import crowding, one_of, scaled
from stageprof_collectors.replay.fixed import Fixed
from stageprof_collectors.replay.free import Free
from stageprof_collectors.replay.model import Model
from stageprof_collectors.replay.pool import pools
from stageprof_collectors.replay.queued import QueuedCourse
from stageprof_collectors.replay.simulation import Amounts
from stageprof_runtime.stage import OUTSIDE, STEP, Stage, stage_of

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: With a larger error the replay does not know the run well enough: what a change saves is then
#: anything up to what it takes from the critical path.
UNSURE: Final = 0.1

#: More runs are not replayed, for each way through them would take many seconds; a change then
#: saves anything up to what it takes from the critical path. Other threads would save anything:
#: nothing is said of them.
LARGEST: Final = 1_000_000


#: What a scheduler does for every task, one after another, on its one thread.
_FOR_TASKS: Final = tuple(STEP[step] for step in ("transition", "task.dump", "task.load"))


_NOTHING: Final = Change()


class Replay:
    """Predicts the wall time of a recorded run under changes."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def saving(self, change: Change) -> tuple[float, float]:
        """Seconds that a change would save, at least and at most; never below 0.

        The unchanged replay minus the changed one, with the placing of tasks as it was and made
        anew, each give or take the share by which its unchanged replay is off.
        """
        spans = self._saved(change)
        of_messages = change.of_messages and self._anew_is_off
        if of_messages:
            spans = spans[:1]
        low = max(0.0, min(span[0] for span in spans))
        high = max(0.0, *(span[1] for span in spans))
        if self.errors[0] > UNSURE:
            low, high = 0.0, max(high, self._taken(change))
        elif of_messages:
            high = max(high, self._taken(change))
        most = max(0.0, self._recording.wall - self._floor(change))
        return min(low, most), min(high, most)

    def wall(self, change: Change) -> tuple[float, float]:
        """Seconds that the run would take under a change, at least and at most.

        More than it took if a change makes it slower; infinitely many if that cannot be told.
        """
        if change.resized and self.errors[0] > UNSURE:
            return self._floor(change), float("inf")
        spans, wall = self._saved(change), self._recording.wall
        low, high = min(span[0] for span in spans), max(span[1] for span in spans)
        if self.errors[0] > UNSURE:
            high = max(high, self._taken(change))
        floor = self._floor(change)
        return max(floor, wall - high), max(floor, wall - low)

    @property
    def error(self) -> float:
        """By what share of the recorded wall time the unchanged replay is off; 1 at most."""
        return max(self.errors)

    @cached_property
    def errors(self) -> tuple[float, float]:
        """The same with the placing of tasks as it was, and with it made anew.

        The latter is off where tasks could not run on any worker, or were placed badly.
        """
        wall = self._recording.wall
        if wall <= 0 or self._too_large:
            return 1.0, 1.0
        fixed, free = self._base_fixed, self._base_free
        off = [abs(w - wall) / wall if w >= 0 else 1.0 for w in (fixed, free)]
        return min(1.0, off[0]), min(1.0, off[1])

    @cached_property
    def _anew_is_off(self) -> bool:
        """Whether a placing made anew is not the recorded run, even without a change.

        Beside the user's own code, which every replay repeats, such an error would look small.
        It happens where threads waited for messages that queued: replayed, these do not queue.
        """
        own = sum(s.stop - s.start for s in self._steps if s.what.step == OUTSIDE) / 1e9
        inside = self._recording.wall - own
        return inside > 0 and self.errors[1] * self._recording.wall > UNSURE * inside

    def _saved(self, change: Change) -> list[tuple[float, float]]:
        """Seconds saved in each way, from and to; negative where a change makes it slower."""
        if self._too_large:
            return [(0.0, 0.0)]
        pairs = zip(self._both(change), self.errors, strict=False)
        return [
            (saved - abs(saved) * error, saved + abs(saved) * error)
            for (base, wall), error in pairs
            for saved in [base - wall]
        ]

    def at_most(self, stage: Stage) -> float:
        """Seconds that the run would be shorter if a stage took no time, at most.

        Both what the critical path holds of it and what a replay without it saves.
        """
        on_path = sum(s.stop - s.start for s in self._steps if stage_of(s.what.step) == stage) / 1e9
        return max(on_path, self.saving(self._without(stage))[1])

    def _without(self, stage: Stage) -> Change:
        """A change that takes a stage away; in runs by the share that it has of each part."""
        left = {part: 1 - share for part, share in self._windows.shares(stage).items()}
        return Change(
            left["compute"], left["lead"], left["fetch"], left["lag"], left["begin"],
            serial=lambda step: float(stage_of(step.what.step) != stage),
        )  # fmt: skip

    @property
    def owner(self) -> Ints:
        """Of each run the graph that led to it (index of `Timeline.graphs`); -1: unknown."""
        return self._model.owner

    @property
    def launching(self) -> Ints:
        """Rows of runs that waited for others that they had launched."""
        return np.array(sorted(self._course.launching), np.int64)

    # -- prepared once ------------------------------------------------------------------------

    @property
    def _steps(self) -> list[Step]:
        return self._recording.path_steps

    @property
    def _too_large(self) -> bool:
        return len(self._recording.timeline.runs["run"]) > LARGEST

    @cached_property
    def _course(self) -> QueuedCourse:
        return QueuedCourse(self._recording)

    @cached_property
    def _model(self) -> Model:
        return Model(self._recording.timeline, self._course.apart)

    @cached_property
    def _windows(self) -> Windows:
        return Windows(self._model, self._steps)

    @cached_property
    def _programs(self) -> list[Program]:
        return self._course.programs(self._model)

    @cached_property
    def _fixed(self) -> Fixed:
        with no_collection():
            return Fixed(self._model, self._programs, self._model.fixed)

    @cached_property
    def _untied(self) -> Fixed:
        """The recorded order on other threads: no run waits for the one that made it room."""
        return Fixed(self._model, self._programs, self._model.free)

    @cached_property
    def _free(self) -> Free:
        with no_collection():
            return Free(self._model, self._programs, self._model.free)

    @cached_property
    def _base_free(self) -> float:
        return self._free.wall(*self._set(_NOTHING, free=True)) / 1e9

    @cached_property
    def _base_fixed(self) -> float:
        return self._fixed.wall(*self._set(_NOTHING, free=False)) / 1e9

    @cached_property
    def _base_untied(self) -> float:
        return self._untied.wall(*self._set(_NOTHING, free=False, untied=True)) / 1e9

    # -- one replay ---------------------------------------------------------------------------

    def _both(self, change: Change) -> list[tuple[float, float]]:
        """Seconds of the unchanged and of the changed replay, in each way that comes to an end."""
        untied = change.resized
        base = self._base_untied if untied else self._base_fixed
        fixed, free = self._ways(change)
        found = [(base, fixed.wall(*self._set(change, free=False, untied=untied)) / 1e9)]
        if self._base_free >= 0:
            wall = free.wall(*self._set(change, free=True)) / 1e9
            found += [(self._base_free, wall)] if wall >= 0 else []
        return found

    def _ways(self, change: Change) -> tuple[Fixed, Free]:
        """Both ways through the model, with the programs that a change leaves."""
        if change.together:
            programs, waits = self._programs_of(change), self._model.free
            return Fixed(self._model, programs, waits), Free(self._model, programs, waits)
        return self._untied if change.resized else self._fixed, self._free

    def _programs_of(self, change: Change) -> list[Program]:
        if not change.together:
            return self._programs
        return together(self._programs, change.together, change.own)

    def _set(
        self, change: Change, *, free: bool, untied: bool = False
    ) -> tuple[Amounts, list[int], list[list[int]]]:
        """What a simulation takes: amounts, the pool of each run, the threads of the pools."""
        amounts = self._amounts(change, free=free, untied=untied)
        return amounts, *pools(self._model, change.threads, change.workers, together=free)

    def _amounts(self, change: Change, *, free: bool, untied: bool) -> Amounts:
        parts = self._model.parts
        lead, fetch = scaled(parts.lead, change.lead), scaled(parts.fetch, change.fetch)
        lag = scaled(self._model.lag_free if free else parts.lag, change.lag)
        # What a thread stood idle between two runs shrinks with what it stood idle for.
        pre = scaled(parts.pre, change.begin)
        gone = parts.lead - lead + parts.fetch - fetch + parts.pre - pre
        gone = gone + self._model.before(parts.lag - lag)
        turn = np.maximum(parts.turn - gone, np.minimum(pre, parts.turn))
        crowded = crowding(change, self._model.threads.counts, free=free)
        turn = scaled(turn, 0.0 if change.bare else crowded)
        return Amounts(
            (lead + fetch).tolist(),
            pre.tolist(),
            (turn if free or untied else pre).tolist(),
            scaled(parts.compute, change.compute).tolist(),
            lag.tolist(),
            *self._of_programs(change),
        )

    def _of_programs(self, change: Change) -> tuple[list[list[int]], list[list[int]]]:
        before, after = [], []
        programs = self._programs_of(change)
        # Graphs handed over as one share the way of all of them: it is measured once.
        ways = {id(op.after): op.after for program in programs for op in program.ops}
        known = {i: length(way, change.serial) for i, way in ways.items()}
        for program in programs:
            factor = 1.0 if program.run < 0 else float(one_of(change.compute, program.run))
            before.append([round(length(op.before, change.serial) * factor) for op in program.ops])
            after.append([known[id(op.after)] for op in program.ops])
        return before, after

    def _floor(self, change: Change) -> float:
        """Seconds that the run takes at least: what its one scheduler does for each task."""
        entries = self._recording.account.entries
        busy = sum(entries[step, "scheduler"].busy for step in _FOR_TASKS) / 1e9
        if not self._model.n:
            return 0.0
        return min(busy * float(np.mean(change.lead)), self._recording.wall)

    def _taken(self, change: Change) -> float:
        """Seconds that a change takes from the critical path: without a schedule, the most."""
        if change.resized:
            return 0.0 if self._too_large else self._recording.wall
        taken = 0.0
        for step in self._steps:
            part = self._windows.part(step)
            if part:
                left = float(one_of(getattr(change, part), step.run))
            else:
                left = change.serial(step) if change.serial and step.run < 0 else 1.0
            taken += (step.stop - step.start) * max(0.0, 1 - left)
        return taken / 1e9
