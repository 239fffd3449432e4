"""Task time that goes into pure Python: the interpreter's own steps, not a library's code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.hotspot import MOSTLY, once
from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Look, Looks, Share
from stageprof_collectors.profiles.nodes import Frame
from stageprof_runtime.stack import PYTHON, SMALL
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of pure Python a compiled form or a library's call leaves between two fifths (where much of it is
#: texts and dicts) and a fiftieth (loops over numbers).
GAIN: Final = (0.6, 0.98)

_TEXT: Final = (
    "The tasks spend this time in Python's own steps: loops, arithmetic on single numbers, calls "
    "of small functions. "
)
_CALLS: Final = (
    "The tasks spend this time in calls that do little each, from a loop: NumPy or pandas take "
    "microseconds for a call, whatever it works on, and run Python in each. Make one call for all "
    "that the loop goes over: a larger array or frame, with an axis more or a column that groups."
)
_NUMBERS: Final = (
    "They take and give numbers or arrays: NumPy does such work on a whole array at once, or Numba "
    "compiles the function, if it works on nothing else inside."
)
_ANYTHING: Final = (
    "If this is work on numbers, NumPy does it on a whole array at once. If it is work on texts or "
    "records, look for a call of a library that does all of it (pandas, PyArrow, `re`, "
    "`collections.Counter`), or compile it with Cython. If neither is to be had, use more worker "
    "processes with one thread each, as far as there are processors."
)
_ONE_AT_A_TIME: Final = " More threads do not help: only one of them runs Python at a time."
_CODE: Final = """\
from numba import njit

# the plain function, not a delayed one; it is compiled at its first call, and says so if it holds
# what cannot be
{name} = njit(nogil=True)({name})"""
#: Types of results that Numba knows: numbers, and arrays of them.
_KNOWN: Final = re.compile(r"(builtins\.)?(bool|int|float|complex)|numpy\.\w+")


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each function of the user's."""
    if not recording.store.rows("stack"):
        return
    looks = Looks(recording)
    functions: dict[tuple[str, str], list[Look]] = {}
    for look in looks.python():
        if look.file:
            functions.setdefault((look.file, look.function), []).append(look)
    for mine in functions.values():
        if sum(look.count for look in mine) >= limits["looks"]:
            yield from _found(recording, looks, mine, limits)


def _found(
    recording: Recording, looks: Looks, mine: list[Look], limits: Limits
) -> Iterator[Finding]:
    shares = _shares(looks, mine)
    main = max(mine, key=lambda look: look.seconds)
    most = shares[main.prefix].middle
    if most < limits["of_tasks"]:
        return
    cost = looks.cost(shares)
    if cost < limits["share"] * recording.wall:
        return
    saved = looks.saving(shares, GAIN)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"`{main.function}`{made_at(main.file, main.line)} {_does(mine)} for {share(most)} of "
            f"the time of `{main.prefix}`: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "share_of_tasks": most,
            "task_s": looks.busy(shares),
            "looks": sum(look.count for look in mine),
            **looks.holding(shares),
        },
        cost_s=cost,
        saving_s=saved,
        fix=_fix(recording, mine, main, most),
        where=Where(main.file, main.line, "", "", main.prefix),
        cause=f"line:{main.file}:{main.line}",
    )


def _shares(looks: Looks, mine: list[Look]) -> dict[str, Share]:
    """How much is C code that a small call needs anyway is not known: at most none of it."""
    shares = looks.interpreted(mine)
    if not _small(mine):
        return shares
    work = {look.work for look in mine}
    return looks.at_most(shares, (look for look in looks.all if look.work in work))


def _small(mine: list[Look]) -> bool:
    """Whether more of it is known to be a library's Python than the user's own."""
    seconds = dict.fromkeys((PYTHON, SMALL), 0.0)
    for look in mine:
        seconds[look.how] = seconds.get(look.how, 0.0) + look.seconds
    return seconds[SMALL] > seconds[PYTHON]


def _does(mine: list[Look]) -> str:
    return "makes small calls in a loop" if _small(mine) else "is pure Python"


def _fix(recording: Recording, mine: list[Look], main: Look, part: float) -> Fix:
    """With code for Numba only if nothing that was seen is what it refuses.

    What takes most of its tasks may be what each of them sets up anew.
    """
    last = "" if without_gil(recording) else _ONE_AT_A_TIME
    last += once(main.function, main.entry) if part >= MOSTLY else ""
    if _small(mine):
        return Fix(_CALLS + last)
    plain = main.function.isidentifier() and not _is_method(recording, main)
    if not plain or not _on_numbers(recording, main):
        return Fix(_TEXT + _ANYTHING + last)
    code = _CODE.format(name=word(main.function, "slow_function"))
    return Fix(_TEXT + _NUMBERS + last, code)


def _on_numbers(recording: Recording, main: Look) -> bool:
    """Whether all that its tasks needed and made is numbers or arrays, and it calls no Python.

    Local schedulers do not tell what tasks make: then it is not known.
    """
    runs, needs = recording.timeline.runs, recording.timeline.depends
    mine = recording.prefixes == main.prefix
    row = needs.user
    types = np.unique(runs["type"][np.concatenate([np.flatnonzero(mine), needs.on[mine[row]]])])
    names = [recording.store.strings[i] for i in types.tolist()]
    return all(map(_KNOWN.fullmatch, names)) and not _calls(recording, main)


def _calls(recording: Recording, main: Look) -> bool:
    """Whether the function was seen to call another one in Python, which Numba does not compile."""
    nodes = recording.nodes
    own = [i for i, frame in enumerate(nodes.frames) if _is(frame, main)]
    called = np.flatnonzero(np.isin(nodes.parent, own)).tolist()
    return any(not _is(nodes.frames[i], main) for i in called)


def _is_method(recording: Recording, main: Look) -> bool:
    """Whether it was seen within a class: what is called so there is no name of the program's."""
    names = (frame.name for frame in set(recording.nodes.frames) if _is(frame, main))
    return any("." in name.rpartition("<locals>.")[2] for name in names)


def _is(frame: Frame, main: Look) -> bool:
    return frame.file == main.file and frame.name.rpartition(".")[2] == main.function


RULE = Rule(
    id="python-bound",
    stage=Stage.EXECUTION,
    summary="Tasks spend their time in pure Python code.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "looks": Limit(10, "fewer of the looks at tasks may be chance"),
        "of_tasks": Limit(0.2, "of a task's time: below, its other work is what counts"),
        "share": Limit(0.02, "of the wall time on the critical path: less is not worth rewriting"),
    },
)
