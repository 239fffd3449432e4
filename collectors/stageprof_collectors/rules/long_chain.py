"""Long chains of tasks, each of which needs the one before and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from stageprof_collectors.account.timeline import Ints
from stageprof_collectors.findings.crowd import CHAIN, MANY, Crowd, Crowds, Kind
from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.overhead import Overhead
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.tables.tasks import names
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

_TEXT: Final = (
    "Do all steps of a chain in one task. Nothing can run beside them, so separate tasks gain "
    "nothing, and each costs about {each} beside its work. With arrays use one `map_blocks`, with "
    "data frames one `map_partitions`, with a function that does all steps."
)
_CODE: Final = """\
import dask

def all_steps(value, steps):
    for step in steps:
        value = step(value)
    return value

# plain functions, not delayed ones; with other arguments: functools.partial(step, other=...)
steps = {steps}
end = dask.delayed(all_steps)(start, steps)  # once for each chain"""

#: A repeated pattern of up to so many steps is printed once.
_PATTERN: Final = 8
#: Of steps without a pattern so many groups of equal ones are printed.
_PRINTED: Final = 12


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for all chains."""
    if len(recording.timeline.runs["run"]) < limits["tasks"]:
        return
    length = int(limits["length"])
    crowds = recording.crowds if length == CHAIN else Crowds(recording, length)
    crowd = crowds.of(Kind.LINKS)
    if crowd is not None and len(crowd.rows) >= limits["tasks"]:
        yield _finding(recording, crowds, crowd)


def _finding(recording: Recording, crowds: Crowds, crowd: Crowd) -> Finding:
    overhead = Overhead(recording, crowd)
    tasks, cost, main = len(crowd.rows), overhead.seconds, crowd.main
    longest = crowds.longest()
    chains = round(float((1.0 / crowds.lengths[crowd.rows]).sum()))
    saved = overhead.saving(tasks / chains)
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{count(chains, 'chain')} of up to {len(longest):,} tasks, one after another, most of "
            f"`{main.prefix}`{made_at(main.file, main.line)}: what each costs beside its work is "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.CONSTRUCTION,
        evidence={
            "tasks": tasks,
            "chains": chains,
            "longest": len(longest),
            "work_each_s": overhead.work_s,
            "overhead_each_s": overhead.each_s,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(
            _TEXT.format(each=seconds(overhead.each_s)),
            _CODE.format(steps=_steps(_prefixes(recording, longest))),
        ),
        where=Where(main.file, main.line, "", main.layer, main.prefix),
        cause=crowd.cause,
    )


def _prefixes(recording: Recording, rows: Ints) -> list[str]:
    """The names of the functions of a chain, in order."""
    prefixes = names(recording.store.keys(recording.timeline.runs["key"][rows]))[1]
    return [word(prefix, "step") for prefix in prefixes]


def _steps(functions: Sequence[str]) -> str:
    """A list of functions as code; what repeats is printed once."""
    # The first often differs: it makes what the others take.
    for some in (functions, functions[1:]):
        repeated = _repeated(some)
        if repeated:
            return repeated
    alike = [(name, len(list(same))) for name, same in groupby(functions)]
    parts = [f"[{name}] * {n}" if n > 1 else f"[{name}]" for name, n in alike]
    rest = "  # and so on" if len(parts) > _PRINTED else ""
    return " + ".join(parts[:_PRINTED]) + rest


def _repeated(functions: Sequence[str]) -> str:
    """A list that is some functions again and again; "" if they are not."""
    for period in range(1, _PATTERN + 1):
        times, over = divmod(len(functions), period)
        if times > 1 and not over:
            first = functions[:period]
            if all(name == first[i % period] for i, name in enumerate(functions)):
                return f"[{', '.join(first)}] * {times}"
    return ""


RULE = Rule(
    id="long-chain",
    stage=Stage.CONSTRUCTION,
    summary="Long chains of tasks that need only the one before are left as separate tasks.",
    find=find,
    ground=Ground.RECORDED,
    limits={
        "tasks": Limit(MANY, "a task costs about a millisecond: fewer never cost a second"),
        "length": Limit(CHAIN, "shorter ones are usual: reading, cleaning and writing are three"),
    },
)
