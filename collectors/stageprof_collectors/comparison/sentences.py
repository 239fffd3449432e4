"""What a comparison says in words, the same on every face; not yet made safe.

Names of the user's are between backticks.
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import Final

from stageprof_collectors.comparison.blame import Blame, Moved, Part, explained
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.comparison.counts import ENOUGH, Count, CountChange, FindingChange, Judged
from stageprof_collectors.comparison.times import WALL, TimeChange
from stageprof_collectors.comparison.worth import LEAST, LEAST_S, Why
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import count, seconds, share, size
from stageprof_runtime.stage import SIX, Stage

#: An object is named if its seconds are this share of the change that is explained.
_ENOUGH: Final = 0.3

#: So many recordings a side are enough to judge times, and so many in pairs.
SIDE, PAIRS = 7, 10

#: What is said of the lines of the account that are no stage of Dask's.
_ELSEWHERE: Final = {
    Stage.OUTSIDE: "code of yours that is not Dask's",
    Stage.UNEXPLAINED: "time of which too little was recorded",
}
_UNJUDGED: Final = {
    "one": "times cannot be judged by one recording a side; take {enough} or more",
    "few": "times cannot be judged by so few recordings; take {enough} a side or more",
    "differ": "times are not judged, for conditions differ; --force judges them all the same",
}
#: What is said of changed times that were not recorded in turn.
_DRIFT: Final = (
    "the sides were not recorded in turn, and it may be the machine that changed meanwhile: false "
    "alarms are more frequent than 2 %; record both in turn to be sure"
)


def verdict(found: Compared) -> str:
    """The whole in one line, in our own words only: `Regression: slower: execution +12 %`."""
    worse = [t for t in found.times if t.judged == Judged.WORSE]
    counts = [c for c in found.counts if c.judged == Judged.WORSE]
    came = [f for f in found.findings if f.judged == Judged.WORSE]
    parts = []
    if worse:
        parts.append("slower: " + ", ".join(f"{t.name} {by(t)}" for t in worse))
    if counts:
        parts.append("more: " + ", ".join(c.what.title for c in counts))
    if came:
        parts.append(count(len(came), "new finding"))
    return f"Regression: {'; '.join(parts)}" if parts else _no_regression(found)


def _no_regression(found: Compared) -> str:
    faster = [t for t in found.times if t.judged == Judged.BETTER]
    if faster:
        what = ", ".join(f"{t.name} {by(t)}" for t in faster)
        return f"No regression; faster: {what}"
    if not found.unjudged:
        return "No regression"
    return f"No regression in what can be judged; {WALL} time {by(found.wall)} is not"


def unjudged(found: Compared) -> str:
    """Why times are not judged; "" if they are."""
    enough = PAIRS if found.options.paired else SIDE
    return _UNJUDGED.get(found.unjudged, "").format(enough=enough)


def sides(found: Compared) -> str:
    """`etl.py: 7 recordings against 7`."""
    one, other = found.baseline.number, found.candidate.number
    paired = ", in pairs" if found.options.paired else ""
    apart = ", not recorded in turn" if _apart(found) else ""
    return f"{count(other, 'recording')} against {one:,} of the baseline{paired}{apart}"


def drift(found: Compared) -> str:
    """That times which changed may be the machine's; "" if none did, or they are not judged."""
    changed = any(t.judged in (Judged.WORSE, Judged.BETTER) for t in found.times)
    return _DRIFT if changed and _apart(found) else ""


def _apart(found: Compared) -> bool:
    """Whether times are judged that were recorded one side after the other."""
    return found.in_turn is False and not found.unjudged


def left_out(name: str, file: str, why: str) -> str:
    """That a recording of a side does not count, and why."""
    return f"Left out of the {name}: {PurePath(file).name}: {why}"


def by(change: TimeChange) -> str:
    """By how much a time changed: of what was seen to change, if that is only parts of it."""
    if not change.by_parts or change.before_s <= 0:
        return percent(change.effect.ratio)
    return percent(1 + change.change_s / change.before_s)


def percent(ratio: float) -> str:
    """A ratio as people say it: `+12 %`, `-3.4 %`, `x 4,200`, `new`."""
    if math.isnan(ratio):
        return "?"
    if math.isinf(ratio):
        return "new"
    if ratio >= 10:
        return f"x {ratio:,.0f}"
    change = (ratio - 1) * 100
    digits = 1 if abs(change) < 9.95 else 0
    sign = "+" if change > 0 else "-"
    shown = f"{abs(change):.{digits}f}"
    return f"{sign}{shown} %" if float(shown) else "0 %"


def interval(change: TimeChange) -> str:
    """Where the change may lie: `+9 % to +13 %`; nothing is said of parts."""
    effect = change.effect
    if change.by_parts or change.judged == Judged.UNKNOWN or math.isinf(effect.high):
        return ""
    return f"{percent(effect.low)} to {percent(effect.high)}"


def signed(value_s: float) -> str:
    """A difference with its sign: `+120 ms`."""
    shown = seconds(abs(value_s))
    return shown if shown == "0 s" else f"{'+' if value_s > 0 else '-'}{shown}"


def word(change: TimeChange) -> str:
    """What is said of a time: `slower`, `faster`, nothing."""
    return {Judged.WORSE: "slower", Judged.BETTER: "faster"}.get(change.judged, "")


# -- blame ----------------------------------------------------------------------------------------


def blamed(found: Blame) -> str:
    """A stage's change and where it comes from, in one sentence."""
    return f"{change_of(found)}: {why(found)}"


def change_of(found: Blame) -> str:
    """The first half of that, in our own words only: `serialization +3.1 s (+240 %)`."""
    ratio = 1 + found.change_s / found.before_s if found.before_s > 0 else math.inf
    return f"{found.stage} {signed(found.change_s)} ({percent(ratio)})"


def why(found: Blame) -> str:
    """The second half, with names of the user's."""
    if found.stage not in SIX:
        return _ELSEWHERE[found.stage]
    for moved in found.objects:
        more = _seconds_more(moved)
        if more >= _ENOUGH * found.change_s > 0:
            return object_moved(moved)
    layer, step = explained(found.layers), explained(found.steps)
    if layer is not None and found.within is not None:
        return f"{found.within.name} {_of(layer, found.within)}{_tasks(found)}{_waiting(found)}"
    return f"{step.name}{_waiting(found)}" if step is not None else "no part of it explains it"


def _waiting(found: Blame) -> str:
    """That more of it is on no processor, if that explains the change."""
    explains = found.waiting_s >= _ENOUGH * found.change_s > 0
    return f"; {seconds(found.waiting_s)} more of it is waiting, not computing" if explains else ""


def _seconds_more(moved: Moved) -> float:
    after, before = (held.seconds if held else 0.0 for held in (moved.after, moved.before))
    return after - before


def _of(layer: Part, within: Part) -> str:
    where = line(layer)
    name = f"`{layer.name}`" if layer.name else "tasks of no layer"
    took = f"{seconds(within.after_s)}, it was {seconds(within.before_s)}"
    return f"for {name}{f' ({where})' if where else ''} takes {took}"


def _tasks(found: Blame) -> str:
    before, after = found.tasks
    return f", with {count(after, 'task')} rather than {before:,}" if before != after else ""


def line(part: Part) -> str:
    """The user's line of a part: `etl.py:41`, `etl.py:43, was 41`; a new one was nowhere."""
    where, moved = at(part.file, part.line), part.was != part.line and part.before_s > 0
    return f"{where}, was {part.was}" if where and moved else where


def object_moved(moved: Moved) -> str:
    """What became of an object: `lookup` (etl.py:41) is now embedded in 400 tasks of `scored`."""
    thing, before, after = moved
    held = after or before
    assert held is not None  # noqa: S101 (one of both is there)
    where = at(thing.file, held.line)
    name = f"`{thing.variable or thing.type}`{f' ({where})' if where else ''}"
    if after is None:
        return f"{name} is no longer embedded"
    into = f"{count(max(after.tasks, 1), 'task')}{f' of `{after.layer}`' if after.layer else ''}"
    if before is None:
        return f"{name}, {size(after.nbytes)}, is now embedded in {into}"
    if after.tasks > before.tasks:
        return f"{name} is now embedded in {into} rather than {before.tasks:,}"
    if after.copies > before.copies:
        return f"{name} is now {after.copies:,} times in its graph rather than {before.copies:,}"
    if after.nbytes > before.nbytes * 1.05:
        grown = f"{size(after.nbytes)} rather than {size(before.nbytes)}"
        return f"{name}, embedded in {into}, is now {grown}"
    took = f"{seconds(after.seconds)} rather than {seconds(before.seconds)}"
    return f"pickling and unpickling {name}, embedded in {into}, takes {took}"


def part(found: Part) -> str:
    """A step, layer or line by its name."""
    return found.name or line(found) or "no layer"


def explains(found: Part) -> str:
    """How much of the change it is: `84 % of it`; where other parts got faster, it is all."""
    return "all of it" if found.share >= 0.995 else f"{share(found.share)} of it"


# -- counts ---------------------------------------------------------------------------------------


def amount(counted: Count, value: float) -> str:
    """A value of a count with its unit."""
    if math.isnan(value):
        return "?"
    return size(value) if counted.unit == "B" else f"{value:,.0f}"


def shows(change: CountChange) -> bool:
    """Whether a count looks any different."""
    if change.judged in (Judged.WORSE, Judged.BETTER):
        return True
    same = spread(change, change.before) == spread(change, change.after)
    return not same and (change.judged == Judged.UNKNOWN or change.why != Why.NONE)


def count_word(change: CountChange) -> str:
    """What is said of a count: `more`, `too little`, nothing; ten letters at most."""
    return _WORDS.get(change.judged, "") or _WHY.get(change.why, ("", ""))[0]


def count_reasons(found: Compared) -> list[str]:
    """What the words for counts mean that changed and are no regression."""
    there = {change.why for change in found.counts if shows(change)}
    return [f"{word}: {said}" for why, (word, said) in _WHY.items() if why in there]


_WORDS: Final = {Judged.WORSE: "more", Judged.BETTER: "less", Judged.UNKNOWN: "not judged"}
_WHY: Final = {
    Why.LITTLE: (
        "too little",
        f"it takes less than {seconds(LEAST_S)} or {LEAST * 100:g} % of the wall time as Dask goes",
    ),
    Why.FASTER: ("but faster", "there is more of it, and the wall time is less"),
}


def spread(change: CountChange, values: tuple[float, float, float]) -> str:
    """A count on one side: `400`, `12.1 MB to 12.4 MB`."""
    low, high = amount(change.what, values[0]), amount(change.what, values[2])
    return low if low == high else f"{low} to {high}"


def times_as_many(change: CountChange) -> str:
    """By how much the middle of a count changed."""
    before, after = change.before[1], change.after[1]
    if before == after:
        return "0 %"
    return percent(after / before) if before else "new"


def unjudged_findings(found: Compared) -> str:
    """Why findings that came or went are not judged; "" if they are."""
    if not any(each.judged == Judged.UNKNOWN for each in found.findings):
        return ""
    few = min(found.baseline.number, found.candidate.number) < ENOUGH
    return "by few recordings they may be chance" if few else "conditions differ"


def of_recordings(change: FindingChange) -> str:
    """`in 7 of 7, was in 0 of 7`."""
    (was, base), (now, head) = change.before, change.after
    return f"in {now} of {head}, was in {was} of {base}"
