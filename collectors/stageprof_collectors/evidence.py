"""What a recording saw, on one clock: what its tables are made from.

Each part is made when asked for and kept. Instants and lengths are ns, but for `wall`.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.account import region, work
from stageprof_collectors.account.account import Account, Entries, Entry, somewhere
from stageprof_collectors.account.indexing import Indexing, indexing
from stageprof_collectors.account.lane import Lanes
from stageprof_collectors.account.path import Step, Walk
from stageprof_collectors.account.timeline import Ints, Timeline
from stageprof_collectors.account.walls import Walls
from stageprof_collectors.failures import Failures
from stageprof_collectors.garbage import give_back, no_collection
from stageprof_collectors.profiles.nodes import Nodes
from stageprof_collectors.storage.layered import Layered
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.incidents import Incidents
from stageprof_collectors.tables.memory import Memory


class Evidence:
    """What was seen of a run."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def complete(self) -> bool:
        """Whether the recording was ended in good order."""
        return self.store.complete

    @property
    def wall(self) -> float:
        """Seconds of the region."""
        span = self.timeline.region
        return (span.stop - span.start) / 1e9

    def forget(self) -> None:
        """Let go of what tables were made from, and of what lies on disk (see `Store.spill`).

        Who asks for it again has it made, or read, anew.
        """
        for name in ("lanes", "walk", "prefixes"):
            self.__dict__.pop(name, None)
        self.timeline.forget()
        self.store.scratch.release()
        give_back()

    @cached_property
    def timeline(self) -> Timeline:
        """All events on one clock."""
        return Timeline(self.store)

    @cached_property
    def lanes(self) -> Lanes:
        """What each thread was doing."""
        return Lanes(self.timeline)

    @cached_property
    def walk(self) -> Walk:
        """What blocking calls waited for."""
        return Walk(self.timeline, self.lanes)

    @cached_property
    def layered(self) -> Layered:
        """The layer of each run."""
        return self.store.layered(self.timeline.runs["key"])

    @cached_property
    def prefixes(self) -> NDArray[np.object_]:
        """The prefix of each run's key."""
        return np.array(self.layered.prefixes, dtype=object)[self.layered.of]

    @cached_property
    def nodes(self) -> Nodes:
        """The stacks that were looked at, of all places as one tree."""
        return Nodes(self.store)

    @cached_property
    def indexing(self) -> Indexing | None:
        """What was indexed by positions."""
        return indexing(self.timeline, self.layered)

    @property
    def owners(self) -> Ints:
        """Number of the graph that led to each run, at its scheduler; -1 if unknown."""
        return self.timeline.owners

    @cached_property
    def memory(self) -> Memory:
        """What the workers may take of memory, and what they took."""
        return Memory(self.timeline)

    @cached_property
    def incidents(self) -> Incidents:
        """What befell the workers for want of memory."""
        return Incidents(self.timeline, self.lanes)

    @cached_property
    def failures(self) -> Failures:
        """What failed: tasks, and the program itself."""
        return Failures(self.timeline, self.layered)

    @cached_property
    def path_steps(self) -> list[Step]:
        """The critical path in ns of the region's clock."""
        with no_collection():
            return region.critical_path(self.timeline, self.lanes, self.walk)

    @cached_property
    def walls(self) -> Walls:
        """The critical path, summed up for windows."""
        return Walls(self.path_steps)

    @cached_property
    def entries(self) -> Entries:
        """The lines of the account by step and place."""
        entries, places = Entries(Entry), len(self.store.places)
        for step in self.path_steps:
            place = step.what.place if 0 <= step.what.place < places else somewhere("")
            entries[step.what.step, place].wall += step.stop - step.start
        work.count(entries, self.timeline, self.lanes, self.path_steps)
        return entries

    @cached_property
    def account(self) -> Account:
        """The stage account."""
        span = self.timeline.region
        roles = [place.role for place in self.store.places]
        return Account.of(span.stop - span.start, self.entries, roles)
