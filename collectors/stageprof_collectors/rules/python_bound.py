"""Task time that goes into pure Python: the interpreter's own steps, not a library's code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.looks import Look, Looks
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Of pure Python a compiled form or a library's call leaves between two fifths (where much of it is
#: texts and dicts) and a fiftieth (loops over numbers).
GAIN: Final = (0.6, 0.98)

_TEXT: Final = (
    "The tasks spend this time in Python's own steps: loops, arithmetic on single numbers, calls "
    "of small functions. If this is work on numbers, NumPy does it on a whole array at once, or "
    "Numba compiles the function as it stands. If it is work on texts or records, look for a call "
    "of a library that does all of it (pandas, PyArrow, `re`, `collections.Counter`), or compile "
    "it with Cython."
)
_ONE_AT_A_TIME: Final = " More threads do not help: only one of them runs Python at a time."
_CODE: Final = """\
from numba import njit

{name} = njit({name})  # compiled at its first call; it says so if it holds what cannot be"""


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
    shares = looks.interpreted(mine)
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
            f"`{main.function}`{made_at(main.file, main.line)} is pure Python for {share(most)} of "
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
        fix=Fix(
            _TEXT + ("" if without_gil(recording) else _ONE_AT_A_TIME),
            _CODE.format(name=word(main.function, "slow_function")),
        ),
        where=Where(main.file, main.line, "", "", main.prefix),
        cause=f"line:{main.file}:{main.line}",
    )


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
