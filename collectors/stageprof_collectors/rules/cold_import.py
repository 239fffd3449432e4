"""Modules imported for the first time while the caller waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from stageprof_collectors.findings.finding import Finding, Fix, severity
from stageprof_collectors.findings.own_imports import PROGRAM, imported_s, whole
from stageprof_collectors.findings.phrase import of_wall
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.cost import cost_of
from stageprof_collectors.replay.relief import Covered, relief
from stageprof_collectors.replay.replay import Change
from stageprof_collectors.tables.crew import TOGETHER
from stageprof_runtime.stage import IMPORT, Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_STEPS: Final = frozenset(IMPORT.values())
#: Not a part of what the user runs: the observer, and what a cluster's own start brings along.
_NOT_THEIRS: Final = ("stageprof", "distributed.dashboard", "bokeh")
#: What takes less than this share of the whole is not named.
_LITTLE: Final = 0.05
#: Modules named in the headline.
_NAMED: Final = 3

_WORKERS: Final = (
    "Import them when the workers start, before there is anything to compute (`preload`; with "
    "`dask worker` it is `--preload`), or have each worker import them while you still prepare. "
    "It is gone in the second run on the same workers."
)
_HERE: Final = (
    "Import them at the top of your program, where nobody waits for a result yet, or do without "
    "them: the program as a whole is quicker only without. It is gone in the second run of the "
    "same process."
)
_WHOLE: Final = (
    "It is your program that imports them, which takes as long at its top: as a whole it is "
    "quicker only without them. It is gone in the second run of the same process."
)
_HERE_TOO: Final = (
    " What your program itself imports, import at its top, where nobody waits for a result yet; as "
    "a whole it is quicker only without."
)
_WHOLE_TOO: Final = (
    " What your program itself imports takes as long wherever it does: it is quicker only without."
)
_PRELOAD: Final = """\
from dask.distributed import Client, LocalCluster

cluster = LocalCluster(preload={modules})  # or, with workers that run already:
client = Client(cluster)
client.run(lambda: [__import__(module) for module in {modules}])"""


class Import(NamedTuple):
    """A module that was imported: where (role, place), on which thread, when (ns)."""

    module: str
    role: str
    place: int
    thread: int
    start: int
    stop: int


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all modules."""
    cost = cost_of(recording, steps=_STEPS)
    least = max(limits["seconds"], limits["share"] * recording.wall)
    if cost < least:
        return
    found = imports(recording)
    saved = _saving(recording, found)
    # What the program itself imports is told where nothing can be saved of it, too.
    if found and (saved[1] >= least or _anyway(recording) >= least):
        yield _finding(recording, found, min(cost, recording.wall), saved)


def _saving(recording: Recording, found: list[Import]) -> tuple[float, float]:
    """At least that of workers which were there before: what others import, they import earlier.

    The program itself, or the call that starts its workers, takes so much longer then. So the most
    is without the program's own imports, where all of it was recorded.
    """
    start, marks = recording.timeline.region.start, recording.timeline.marks("worker seen")
    came = {label.partition(" ")[0]: t for t, _, label in marks}
    names = [place.name for place in recording.store.places]
    sure = [
        i for i in found if i.role == "worker" and came.get(names[i.place], 0) < start + TOGETHER
    ]
    low = recording.replay.saving(without(recording, sure))[0] if sure else 0.0
    rest = [i for i in found if i.role != PROGRAM] if whole(recording) else found
    return low, recording.replay.saving(without(recording, rest))[1] if rest else 0.0


def _anyway(recording: Recording) -> float:
    """Seconds in which a whole program imports, which take as long wherever they are."""
    return sum(imported_s(recording, s) for s in IMPORT) if whole(recording) else 0.0


def imports(recording: Recording) -> list[Import]:
    """The imports of a recording that are the user's, longest first."""
    spans, store = recording.timeline.spans, recording.store
    rows = np.flatnonzero(np.isin(spans["step"], list(_STEPS)))
    columns = (spans[name][rows].tolist() for name in ("label", "place", "thread", "start", "stop"))
    found = [
        Import(store.strings[label], store.places[place].role, place, *rest)
        for label, place, *rest in zip(*columns, strict=True)
    ]
    theirs = [i for i in found if not i.module.startswith(_NOT_THEIRS)]
    return sorted(theirs, key=lambda i: i.start - i.stop)


def without(recording: Recording, found: list[Import]) -> Change:
    """The change that takes imports away: from runs where they fell into them, else whole."""
    taken = {(i.place, i.module) for i in found}
    texts = recording.store.strings
    trouble: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i in found:
        if i.role == "worker":
            trouble[i.place].append((i.start, i.stop))
    rest = relief(recording, trouble)
    return Change(
        compute=_compute(recording, found),
        lead=rest.lead,
        fetch=rest.fetch,
        begin=rest.begin,
        lag=rest.lag,
        serial=lambda s: float(
            s.what.step not in _STEPS or (s.what.place, texts[s.what.label]) not in taken
        ),
    )


def _compute(
    recording: Recording, found: list[Import]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What is left of each task's function without the imports on its thread."""
    runs = recording.timeline.runs
    left = np.ones(len(runs["run"]))
    lanes: defaultdict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for i in found:
        lanes[i.place, i.thread].append((i.start, i.stop))
    for (place, thread), spans in lanes.items():
        mine = recording.timeline.at.of(place)
        mine = mine[runs["thread"][mine] == thread]
        start, stop = runs["start"][mine], runs["stop"][mine]
        left[mine] = 1 - Covered(spans).of(start, stop) / np.maximum(stop - start, 1)
    return np.clip(left, 0.0, 1.0)


def _finding(
    recording: Recording, found: list[Import], cost: float, saved: tuple[float, float]
) -> Finding:
    by_module: defaultdict[str, float] = defaultdict(float)
    by_role: defaultdict[str, float] = defaultdict(float)
    for i in found:  # each process imports for itself, at the same time as the others
        by_module[i.module] = max(by_module[i.module], (i.stop - i.start) / 1e9)
        by_role[i.role] += (i.stop - i.start) / 1e9
    least = max(by_module.values()) * _LITTLE
    slowest = sorted((m for m in by_module if by_module[m] >= least), key=lambda m: -by_module[m])
    named = ", ".join(f"{m} ({seconds(by_module[m])})" for m in slowest[:_NAMED])
    least = sum(by_role.values()) * _LITTLE
    roles = sorted((r for r in by_role if by_role[r] >= least), key=lambda r: -by_role[r])
    where = " and ".join(f"{role}s" if role == "worker" else f"the {role}" for role in roles)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"Imported while you waited, on {where}: {named}: {of_wall(cost, recording)}",
        stage=Stage.SERIALIZATION,
        evidence={
            "modules": len(by_module),
            **{f"{role}_s": seconds_ for role, seconds_ in by_role.items()},
            **{f"{module}_s": by_module[module] for module in slowest[:_NAMED]},
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(found, here=PROGRAM in roles, all_=whole(recording)),
        cause="imports",
    )


def _fix(found: list[Import], *, here: bool, all_: bool) -> Fix:
    """What to do for the workers, and, if they took long `here`, for the program itself.

    `all_` of that was recorded: nothing can be moved out of it.
    """
    modules = _worth_it([i for i in found if i.role == "worker"])
    if not modules:
        return Fix(_WHOLE if all_ else _HERE)
    more = _WHOLE_TOO if all_ else _HERE_TOO
    return Fix(_WORKERS + more * here, _PRELOAD.format(modules=modules))


def _worth_it(found: list[Import]) -> list[str]:
    """Modules that take most of the time, as can be printed."""
    took: defaultdict[str, int] = defaultdict(int)
    for i in found:
        if all(part.isidentifier() for part in i.module.split(".")):
            took[i.module] += i.stop - i.start
    least = sum(took.values()) * _LITTLE
    return sorted((m for m, ns in took.items() if ns >= least), key=lambda m: -took[m])


RULE = Rule(
    id="cold-import",
    stage=Stage.SERIALIZATION,
    summary="Modules are imported for the first time while the caller waits.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.03, "of the wall time: from here on a finding is more than a note"),
        "seconds": Limit(0.5, "less is not worth another way of starting workers"),
    },
)
