"""Dask takes results for much more, or much less, than the memory that they take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings import shortage
from stageprof_collectors.findings.embedded import embedded
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.leak import brought
from stageprof_collectors.findings.misjudged import Misjudged, misjudged
from stageprof_collectors.findings.phrase import a_kind
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_CODE: Final = '''\
from dask.distributed import get_client


def register_size():
    import sys

    from dask.sizeof import sizeof
{imported}
    @sizeof.register({type})
    def size_of_{lower}(value):
        """What it says itself, or of what it holds; what is cut out of an array counts once."""
        told = getattr(value, "nbytes", None) or getattr(value, "estimated_size", None)
        if told is not None:
            return int(told() if callable(told) else told)
        found, left = {{}}, list(getattr(value, "__dict__", {{}}).values())
        for kind in type(value).__mro__:
            names = getattr(kind, "__slots__", ())
            names = [names] if isinstance(names, str) else names
            left.extend(getattr(value, name) for name in names if hasattr(value, name))
        if isinstance(value, (dict, list, tuple, set)):
            left.extend(value.values() if isinstance(value, dict) else value)
        while left:
            part = left.pop()
            if isinstance(part, dict):
                left.extend(part.values())
            elif isinstance(part, (list, tuple, set)):
                left.extend(part)
            else:
                while getattr(part, "base", None) is not None:
                    part = part.base
                found[id(part)] = part
        if not found:  # it may hold what Python does not see
            return sys.getsizeof(value)
        return 100 + sum(sizeof(part) for part in found.values())


register_size()
get_client().run(register_size)'''

_OWN: Final = (
    "Tell Dask how large a `{type}` is. The code registers a size on all workers that are there; "
    "workers that start later do not have it, so put the registration beside the class, in a "
    "module that the workers import."
)
_LISTED: Final = (
    "Dask weighs a few of the items of a `{type}` and takes the others for as large. Register a "
    "size for what is in it (`dask.sizeof.sizeof.register`), or return what has one size, an array "
    "or a frame."
)
_ARRAY: Final = (
    "A small piece of a large array keeps the whole array in memory, and Dask counts the piece "
    "only; pieces that overlap are counted each by itself. Return a copy of the piece, "
    "`piece.copy()`, or the large array and cut it later."
)
#: Types whose size Dask knows; results of them are wrong only where they share memory.
_KNOWN: Final = ("numpy.", "pandas.")
#: Types of which it weighs some items.
_SAMPLED: Final = frozenset({"list", "dict", "set", "tuple"})


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each kind of task."""
    for wrong in misjudged(recording, limits["factor"]):
        if any(brought(thing, wrong.prefix, wrong.real) for thing in embedded(recording)):
            continue  # it came with the task, and is no part of the result
        saving = _saving(recording, wrong)
        cost = shortage.spill_cost(recording) + shortage.pause_cost(recording)
        where = shortage.of_prefix(recording, wrong.prefix)
        yield Finding(
            rule=RULE.id,
            severity=severity(saving, recording.wall),
            headline=_headline(recording, wrong, where, cost),
            stage=Stage.EXECUTION,
            evidence={
                "type": wrong.type,
                "claimed_bytes": wrong.claimed,
                "measured_bytes": wrong.real,
                "measured_runs": wrong.runs,
                "spilling_s": shortage.seconds_of(recording.incidents.spilling),
                "paused_s": shortage.seconds_of(shortage.paused(recording)),
            },
            cost_s=cost,
            saving_s=saving,
            fix=_fix(wrong),
            where=where,
            cause=shortage.CAUSE if saving[1] else f"sizeof:{wrong.prefix}",
        )


def _headline(recording: Recording, wrong: Misjudged, where: Where, cost: float) -> str:
    kind = a_kind(wrong.type or "result")
    real = size(wrong.real) if wrong.real else "next to nothing"
    return (
        f"Dask takes {kind} of {shortage.named(where)} for {size(wrong.claimed)}, but it takes "
        f"{real}: {seconds(cost)} of {seconds(recording.wall)} went into spilling and pauses"
    )


def _saving(recording: Recording, wrong: Misjudged) -> tuple[float, float]:
    """Without what came of it: all spilling and pauses if there is room for the real sizes."""
    trouble = shortage.both(recording)
    if not trouble:
        return 0.0, 0.0
    if not wrong.over:
        pauses = shortage.paused(recording)
        return 0.0, shortage.saving(recording, pauses, spill=False)[1] if pauses else 0.0
    low, high = shortage.saving(recording, trouble, spill=True)
    return (low, high) if _fits(recording, wrong) else (0.0, high)


def _fits(recording: Recording, wrong: Misjudged) -> bool:
    """Whether results of the measured size would have stayed below what a worker may hold."""
    tasks = recording.tasks()
    share = float(tasks["nbytes"][tasks["prefix"] == wrong.prefix].sum() / tasks["nbytes"].sum())
    part = 1 - share + share * wrong.real / wrong.claimed
    memory = recording.memory
    return all(
        memory.of(place).results_peak * part <= (limits.target or 1.0) * limits.limit
        for place, limits in memory.limits.items()
    )


def _fix(wrong: Misjudged) -> Fix:
    if wrong.type.startswith(_KNOWN):
        return Fix(_ARRAY)
    module, _, name = wrong.type.rpartition(".")
    if name in _SAMPLED or module == "collections":
        return Fix(_LISTED.format(type=name))
    name = name if name.isidentifier() else "YourClass"
    code = _CODE.format(type=name, lower=name.lower(), imported=_imported(module, name))
    return Fix(_OWN.format(type=name), code)


def _imported(module: str, name: str) -> str:
    """How the class comes there, if it is of a module."""
    named = module != "__main__" and all(part.isidentifier() for part in module.split("."))
    return f"    from {module} import {name}\n" if named else ""


RULE = Rule(
    id="sizeof-wrong",
    stage=Stage.EXECUTION,
    summary="Results take another amount of memory than Dask takes them for.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "factor": Limit(
            2.0, "how far off: below, what allocators keep and share is as large as the error"
        )
    },
)
