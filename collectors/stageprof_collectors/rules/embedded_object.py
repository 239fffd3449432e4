"""A large object of the user's travels inside the graph, with every task that uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.embedding import Embedded, Without, embedded
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import at, made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.replay.toll import tolls
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Objects looked at: those that cost less than these are no cause of slowness.
_MOST: Final = 20
#: A stage with this part of the cost or more is named: the bytes are pickled, then sent, then held.
_TELLING: Final = 0.05

_TEXT: Final = (
    "Make or read it in a task of its own: then it never travels with the graph, and each worker "
    "gets it once. If it must be made here, wrap it in `delayed`: then it travels once and not "
    "with each of {tasks}."
)
_OUTSIDE: Final = (
    " The function has it from outside ({how}); give it to the function as an argument, so that "
    "it can be wrapped."
)
_CODE: Final = """\
import dask

{name} = dask.delayed({name}, traverse=False)  # travels once
# better, it does not travel: {name} = dask.delayed(function_that_makes_it)(...)"""
_FUTURE: Final = """\
import dask
from dask.distributed import get_client

# a future: it travels once. Better, it does not: client.submit(function_that_makes_it, ...)
{name} = get_client().compute(dask.delayed({name}, traverse=False))"""

#: Keys of `delayed` calls end in a UUID, those of futures in 32 hexadecimal digits.
_FUTURES_KEY: Final = re.compile(r".*-[0-9a-f]{32}")


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each object that is large, or whose way takes a share of the run."""
    for i, thing in enumerate(embedded(recording)):
        if i >= _MOST:
            return
        large = thing.sent_bytes >= limits["nbytes"] or thing.graph_bytes >= limits["nbytes"]
        slow = thing.total_s >= limits["share"] * recording.wall
        if (large or slow) and not thing.slow_for_its_bytes:
            yield _finding(recording, thing)


def _finding(recording: Recording, thing: Embedded) -> Finding:
    without = Without(recording, thing)
    never, once = without.everywhere(), without.once()
    both = [recording.replay.saving(change) for change in (never, once)]
    saved = min(low for low, _ in both), max(high for _, high in both)
    costs = tolls(recording, never)
    cost = max(0.0, sum(costs.values()))
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"{introduced(thing)}: {of_wall(cost, recording)}",
        stage=Stage.SERIALIZATION,
        evidence={
            "type": thing.type,
            "object_bytes": thing.nbytes,
            "copies_in_graph": thing.copies,
            "tasks": thing.tasks,
            "sent_bytes": thing.sent_bytes,
            "pickling_s": thing.total_s,
            "how": thing.how,
            **{f"{stage}_s": s for stage, s in costs.items() if s > _TELLING * cost},
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix(thing, futures=_by_futures(recording, thing)),
        where=Where(thing.file, thing.line, thing.variable, min(thing.layers, default="")),
        cause=thing.cause,
    )


def introduced(thing: Embedded) -> str:
    """What it is, where it was made, and what holds it."""
    kind = thing.type.rpartition(".")[2] or "object"
    name = f"`{thing.variable}`, a {kind}" if thing.variable else f"An unnamed {kind}"
    used = at(thing.used_file, thing.used_line)
    held = f"{count(thing.tasks, 'task')}" if thing.tasks else "the graph"
    return (
        f"{name} of {size(thing.nbytes)}{made_at(thing.file, thing.line, ' made at ')}, "
        f"is embedded in {held}{f' of {used}' if used else ''}"
    )


def fix(thing: Embedded, *, futures: bool) -> Fix:
    """What to do; `futures`: it was given to `submit` or `map`."""
    outside = not thing.how.startswith(("argument", "keyword")) and " of " in thing.how
    text = _TEXT.format(tasks=count(thing.tasks, "task"))
    code = _FUTURE if futures else _CODE
    name = word(thing.variable, "thing")
    return Fix(text + (_OUTSIDE.format(how=thing.how) if outside else ""), code.format(name=name))


def _by_futures(recording: Recording, thing: Embedded) -> bool:
    """Whether it was given to `submit` or `map`."""
    layer = min(thing.layers, default="")
    if not _FUTURES_KEY.fullmatch(layer):
        return False
    runs = recording.timeline.runs["key"]
    return any(key == layer for key in recording.store.keys(runs))


RULE = Rule(
    id="embedded-object",
    stage=Stage.SERIALIZATION,
    summary="A large object of the user's travels inside the graph or with its tasks.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "share": Limit(0.01, "of the wall time in pickling it: it grows with every task"),
        "nbytes": Limit(10_000_000, "bytes in the graph or sent: where Dask warns, too"),
    },
)
