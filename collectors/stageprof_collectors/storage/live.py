"""What the live view shows of a run, read off the heads of its batches."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from stageprof_runtime.stage import Stage, stage_of


class _Head(msgspec.Struct):
    """What of a batch the live view needs."""

    place: tuple[str, str, int, str, int]
    now: int = 0
    counts: tuple[int, int, int] = (0, 0, 0)


@dataclass
class Live:
    """How far the run is: per place, its latest step and counts."""

    #: place's name -> step code; 0 if between steps
    now: dict[str, int] = field(default_factory=dict)
    #: place's name -> (tasks, assigned, finished)
    counts: dict[str, tuple[int, int, int]] = field(default_factory=dict)

    def see(self, batch: bytes) -> None:
        """Note what a batch says of its place; nothing of one that is none."""
        try:
            head = msgspec.msgpack.decode(batch, type=_Head)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        role, name = head.place[0], head.place[3]
        self.now[f"{role} {name}"] = head.now
        if any(head.counts):
            self.counts[name] = head.counts

    @property
    def tasks(self) -> tuple[int, int, int]:
        """Tasks known, assigned and finished, over all schedulers."""
        counts = list(self.counts.values())  # another thread may add a place meanwhile
        known, assigned, done = [sum(column) for column in zip(*counts, strict=True)] or [0, 0, 0]
        again = max(0, done - known)  # results that were lost are made once more
        return known, assigned - again, done - again

    @property
    def stage(self) -> Stage:
        """The stage that most likely holds the caller up now."""
        now = {place.partition(" ")[0]: step for place, step in dict(self.now).items() if step}
        known, assigned, done = self.tasks
        if "client" in now:
            return stage_of(now["client"])
        if assigned > done:
            return Stage.EXECUTION
        if "scheduler" in now:
            return stage_of(now["scheduler"])
        return Stage.SCHEDULING if known > done else Stage.OUTSIDE
