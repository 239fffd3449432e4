"""The lines of the user's at which tasks, or the program, were seen most, whatever they did."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.profiles.lines import own_lines
from stageprof_collectors.profiles.looks import Looks

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: Looks at tasks from which on they say something.
LEAST: Final = 20
#: The part of the tasks' time from which on a line is named, and how many lines are.
PART: Final = 0.1
MOST: Final = 3
#: From this part on a function that the tasks call is what they do.
MOSTLY: Final = 0.5


class Hotspot(NamedTuple):
    """A line of the user's: its function, and that which the task was; part of the tasks' time.

    Of a line with several functions (lambdas stand in others) it is the one seen most.
    """

    file: str
    line: int
    function: str
    entry: str
    part: float


def hotspots(recording: Recording, prefix: str = "") -> list[Hotspot]:
    """The lines with a good part of the tasks' time, the largest first; none after few looks.

    Args:
        recording: of the tasks.
        prefix: of the keys of those that are looked at; "" for all.
    """
    looks = [look for look in Looks(recording).all if prefix in ("", look.prefix)]
    whole = sum(look.seconds for look in looks)
    if sum(look.count for look in looks) < LEAST or whole <= 0:
        return []
    total: defaultdict[tuple[str, int, str, str], float] = defaultdict(float)
    for look in looks:
        if look.file:
            total[look.file, look.line, look.function, look.entry] += look.seconds
    lines: dict[tuple[str, int], Hotspot] = {}
    for where, took in sorted(total.items(), key=lambda item: -item[1]):
        spot = lines.setdefault(where[:2], Hotspot(*where, 0.0))
        lines[where[:2]] = spot._replace(part=spot.part + took / whole)
    found = sorted(lines.values(), key=lambda spot: -spot.part)
    return [spot for spot in found if spot.part >= PART][:MOST]


def sentence(spots: list[Hotspot]) -> str:
    """What the lines say, with a space before it; "" without any."""
    if not spots:
        return ""
    named = [f"{share(s.part)} was at {at(s.file, s.line)}{_within(s)}" for s in spots]
    told = f" Of the time in tasks {', '.join(named)}."
    return told + _kept(spots)


def own(recording: Recording) -> str:
    """Where the program was beside Dask for a good part of the run, with a space before; or ""."""
    least = PART * recording.wall
    lines = [line for line in own_lines(recording) if line.seconds >= least][:MOST]
    named = ", ".join(f"at {at(i.file, i.line)} for {seconds(i.seconds)}" for i in lines)
    return f" Your own code was {named}." if named else ""


def needless(recording: Recording, prefix: str) -> str:
    """Of tasks of which a function that they call takes most: what to do if it need not."""
    return _kept(hotspots(recording, prefix))


def _kept(spots: list[Hotspot]) -> str:
    first = spots[:1]
    return "".join(once(spot.function, spot.entry) for spot in first if spot.part >= MOSTLY)


def once(function: str, entry: str) -> str:
    """What to do if a function that a task calls need not be, with a space before it.

    "" for the task's own, and for what has no name. What Python calls itself (`__init__`) cannot be
    kept, but what calls it can.
    """
    if function == entry or not function.isidentifier():
        return ""
    if function.startswith("__"):
        return (
            f" If what `{function}` sets up is the same each time, let each process do it once: in "
            "a function of its own with `functools.cache`, which returns the object."
        )
    return (
        f" If `{function}` gives the same each time, let each process call it once "
        "(`functools.cache`)."
    )


def _within(spot: Hotspot) -> str:
    return f" (`{spot.function}`)" if spot.function.isidentifier() else ""
