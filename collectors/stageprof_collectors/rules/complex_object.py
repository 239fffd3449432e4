"""An object takes longer to pickle than its bytes explain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.burden import Burdens
from stageprof_collectors.findings.crowd import Kind
from stageprof_collectors.findings.embedded import Embedded, embedded
from stageprof_collectors.findings.files import fewer_known, known_of_files
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import introduced, made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds, size
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.without import Without
from stageprof_collectors.replay.toll import toll
from stageprof_collectors.rules import embedded_object
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "It is made of many small Python objects, or has a `__reduce__` of its own; each is pickled "
    "by itself. Keep such data in a few arrays or a data frame, which are pickled as the bytes "
    "that they are, or make it in the task from what is simple. If its class is in the script "
    "itself, import it from a module: then only its name travels."
)
_THEN: Final = "To make that once quick, too: "
_CODE: Final = """\
import numpy as np

# an array for each attribute, instead of an object for each item
items = list({name})
columns = {{key: np.array([getattr(item, key) for item in items]) for key in vars(items[0])}}"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each such object."""
    things = list(embedded(recording))
    if not things:
        return
    burdens = Burdens(recording, things)
    for thing in things:
        if thing.total_s < limits["share"] * recording.wall:
            return  # they come costliest first
        if thing.slow_for_its_bytes:
            yield _finding(recording, thing, burdens)


def _finding(recording: Recording, thing: Embedded, burdens: Burdens) -> Finding:
    without = Without(recording, thing, burdens)
    change = without.everywhere()
    saved, cost = recording.replay.saving(change), toll(recording, change)
    if thing.shared and not known_of_files(thing.how):  # at least it is handed over once
        saved = min(saved[0], recording.replay.saving(without.once())[0]), saved[1]
    made = made_at(thing.file, thing.line, " made at ")
    made = made or made_at(thing.used_file, thing.used_line, " of ")
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=f"{_described(thing, made)}: {of_wall(cost, recording)}",
        stage=Stage.SERIALIZATION,
        evidence={
            "type": thing.type,
            "object_bytes": thing.nbytes,
            "dump_s": thing.dump_s,
            "all_hops_s": thing.total_s,
            "bytes_per_s": thing.graph_bytes / max(thing.dump_s, 1e-9),
            "tasks": thing.tasks,
            "how": thing.how,
        },
        cost_s=cost,
        saving_s=saved,
        fix=fix(thing, embedded_object.fix_of(recording, thing) if thing.shared else None),
        where=Where(
            thing.file or thing.used_file,
            thing.line or thing.used_line,
            thing.variable,
            min(thing.layers, default=""),
        ),
        cause=_cause(recording, thing),
    )


def _described(thing: Embedded, made: str) -> str:
    name = introduced(thing.type, thing.variable, made, many=thing.many)
    takes, are = ("each take", "are") if thing.many > 1 else ("takes", "is")
    each, tasks = size(thing.nbytes // thing.many), count(thing.tasks, "task")
    return f"{name} {takes} {seconds(thing.each_dump_s)} to pickle for {each}, and {are} in {tasks}"


def _cause(recording: Recording, thing: Embedded) -> str:
    """What Dask knows of files is as large as they are many: so are the tasks that read them."""
    crowd = recording.crowds.of(Kind.CHUNKS) if known_of_files(thing.how) else None
    return crowd.cause if crowd else thing.cause


def fix(thing: Embedded, once: Fix | None = None) -> Fix:
    """What to do; `once`: how to have it travel once, where it is in several tasks."""
    if known_of_files(thing.how):
        return fewer_known(thing.how)
    if once is not None:
        return Fix(f"{once.text} {_THEN}{_TEXT}", once.code)
    name, keyed = word(thing.variable, "things"), thing.type.rpartition(".")[2] == "dict"
    return Fix(_TEXT, "" if keyed else _CODE.format(name=name))


RULE = Rule(
    id="complex-object",
    stage=Stage.SERIALIZATION,
    summary="An object in a graph takes longer to pickle than its bytes explain.",
    find=find,
    ground=Ground.RECORDED,
    limits={"share": Limit(0.01, "of the wall time in pickling it: it grows with every task")},
)
