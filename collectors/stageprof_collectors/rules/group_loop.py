"""Task time that goes into Python for each of many small groups of a frame."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import share
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.profiles.groupby import Grouping, groupings
from stageprof_collectors.profiles.looks import Looks
from stageprof_runtime.stage import Stage

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: All groups at once take between two fifths of it (several passes, each over all the rows) and
#: next to nothing (one sum).
GAIN: Final = (0.6, 0.99)

_TEXT: Final = (
    "pandas makes a frame for each group, and each operation on that takes about as long as on "
    "thousands of rows. Do all groups at once: pandas' own aggregations and transforms are "
    "compiled, and its aggregations need no shuffle in Dask either. What has to be in order within "
    "groups, sort once before. What they do not have, one pass over sorted columns often does, "
    "with Numba or `numpy.add.reduceat`."
)
_CODE: Final = """\
def {name}_of_all(frame, keys):
    groups = frame.groupby(keys)  # to aggregate, of a frame of Dask's, too
    # group["x"].max() - group["x"].min()   ->  groups["x"].max() - groups["x"].min()
    # group["x"] - group["x"].mean()        ->  frame["x"] - groups["x"].transform("mean")
    # group.sort_values("t").iloc[0]        ->  frame.sort_values("t").drop_duplicates(keys)
    # group["t"].diff(), rank(), cumsum()   ->  groups["t"].diff(), rank(), cumsum()
    # if len(group) < 3                     ->  frame[groups["x"].transform("size") >= 3]
    return groups.agg({{"x": "sum", "t": ["min", "max"]}})"""


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One finding for each place that goes over groups in Python."""
    found = groupings(recording, max(1, int(limits["looks"])))
    if not found:
        return
    looks = Looks(recording)
    for grouping in found:
        small = grouping.rows <= limits["rows"] * grouping.groups
        if small and grouping.groups >= limits["groups"]:
            yield from _found(recording, looks, grouping, limits)


def _found(
    recording: Recording, looks: Looks, grouping: Grouping, limits: Limits
) -> Iterator[Finding]:
    shares = {grouping.prefix: grouping.share}
    cost, busy = looks.cost(shares), looks.busy(shares)
    if cost < limits["share"] * recording.wall:
        return
    saved = looks.saving(shares, GAIN)
    where = _where(recording, looks, grouping)
    yield Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"{_who(grouping, where)} {share(grouping.share.middle)} of the time of "
            f"`{grouping.prefix}`: {of_wall(cost, recording)}"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "groups": grouping.groups,
            "rows_of_a_group": grouping.rows / grouping.groups,
            "each_s": busy / grouping.groups,
            "share_of_tasks": grouping.share.middle,
            "task_s": busy,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(_TEXT, _CODE.format(name=word(_names(grouping)[0], "function"))),
        where=where,
        cause=f"groups:{where.file}:{where.line}",
        also=frozenset(f"line:{line}" for line in grouping.inside),
    )


def _who(grouping: Grouping, where: Where) -> str:
    """Who goes over how many groups, and where, with the verb."""
    groups, names = grouping.groups, _names(grouping)
    each = f"{groups:,} groups of {grouping.rows / groups:,.1f} rows"
    at = made_at(where.file, where.line)
    if grouping.loop.file:
        return f"A loop over {each} in `{names[0]}`{at} takes"
    if len(names) > 1:
        them = [f"`{name}`{made_at(file, line)}" for name, file, line in grouping.functions]
        return f"{' and '.join(them)}, called for each of {each}, take"
    called = f"`{names[0]}`, called" if names[0] else "A function called"
    return f"{called} for each of {each}{at}, takes"


def _names(grouping: Grouping) -> list[str]:
    return [called.name for called in grouping.functions] or [""]


def _where(recording: Recording, looks: Looks, grouping: Grouping) -> Where:
    """The user's loop, or the line that made the layer of the prefix's tasks.

    Several functions are called in several lines; which in which is not known, but where they are.
    """
    row, functions = recording.groups.most(looks.runs([grouping.prefix])), grouping.functions
    file, line = row.file, row.line
    if grouping.loop.file or len(functions) > 1:
        _, file, line = functions[0]
    return Where(file, line, "", row.layer, grouping.prefix)


RULE = Rule(
    id="group-loop",
    stage=Stage.EXECUTION,
    summary="Tasks call Python for each of many small groups of a frame.",
    find=find,
    ground=Ground.REWRITTEN,
    limits={
        "looks": Limit(10, "fewer of the looks at tasks may be chance"),
        "groups": Limit(1_000, "a group takes about a millisecond: fewer seldom cost a second"),
        "rows": Limit(1_000, "of a group, on average: with more it is compiled code that works"),
        "share": Limit(0.05, "of the wall time on the critical path: less is not worth rewriting"),
    },
)
