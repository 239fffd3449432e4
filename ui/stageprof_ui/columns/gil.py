"""Who held the GIL, who waited for it, what that is known from, and what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.account.timeline import present
from stageprof_collectors.findings.innocence import without_gil
from stageprof_collectors.findings.phrase import at
from stageprof_collectors.findings.quantity import count, seconds
from stageprof_collectors.findings.standing import seconds_of
from stageprof_collectors.profiles.gil import Names
from stageprof_collectors.profiles.whereabouts import OURSELVES, SPY
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_ui.columns.series import Samples
from stageprof_ui.columns.timeline import present_threads

#: Seconds of an event loop's waiting that are told; less nobody notices.
LATE_S: Final = 0.1
#: Processes that a sentence names.
NAMED: Final = 5

#: What a row of a holder is of, and what of it is summed.
_WHOSE: Final = ["function", "file", "line", "prefix", "thread", "place"]
_SUMS: Final = ["caused_s", "hold_s", "wait_s"]
_SEVERAL: Final = "(several)"
_HOLDERS: Final = ["function", "at", "prefix", "caused", "held", "waited", "thread", "place"]
_WAITERS: Final = ["who", "place", "waited", "percent"]
_WATCHED: Final = "watch"
_TICKER: Final = "ticker: "
_FREE: Final = "without a GIL"


# -- tables ---------------------------------------------------------------------------------------


def numbered(recording: Recording, found: pd.DataFrame) -> pd.DataFrame:
    """`Recording.gil()` with the threads that run tasks called as in the time line: "thread 1"."""
    runs, gil = recording.timeline.runs, recording.timeline.gil
    names: dict[tuple[str, str], str] = {}
    called = Names(recording)
    for place in recording.timeline.at.numbers:
        process, mine = int(gil.process[place]), recording.timeline.at.of(place)
        for i, thread in enumerate(present_threads(runs["thread"][mine])):
            names[called.of(process, thread)] = f"thread {i + 1}"
    threads = zip(found["place"].tolist(), found["thread"].tolist(), strict=True)
    return found.assign(thread=[names.get(one, one[1]) for one in threads])


def holders(found: pd.DataFrame, why: str = "") -> pd.DataFrame:
    """Those that others waited for most first, then what no look saw, and stageprof itself last.

    Where no line at all is known, rows are of tasks, and function and line are "".

    Args:
        found: as `numbered` has it.
        why: why something was not seen, as `unseen` says it.
    """
    sums = _one_of_us(found.groupby(_WHOSE, sort=False, as_index=False)[_SUMS].sum())
    sums = sums.sort_values(["caused_s", "hold_s", "wait_s"], ascending=False)
    seen, own = sums["function"] != "", sums["function"] == OURSELVES
    known = lines_known(found)
    theirs = [sums[seen & ~own], _joined(sums[~seen])] if known else [sums[~own]]
    parts = [*theirs, sums[own]]  # a reader can change the others only
    rows = [_holder(row, why) for part in parts for row in part.to_dict("records")]
    return pd.DataFrame(rows, columns=_HOLDERS)


def _one_of_us(sums: pd.DataFrame) -> pd.DataFrame:
    """With one row for all that stageprof itself held in a process, whichever threads it ran on."""
    own = sums["function"] == OURSELVES
    ours = [_joined(mine) for _, mine in sums[own].groupby("place", sort=False)]
    return pd.concat([*([] if own.all() else [sums[~own]]), *ours])


def lines_known(found: pd.DataFrame) -> bool:
    """Whether it is known of anybody at which line it was."""
    return bool((found["file"] != "").any())


def _joined(rows: pd.DataFrame) -> pd.DataFrame:
    """Some rows as one; what they do not share is several things."""
    if not len(rows):
        return rows
    whose = {name: rows[name].iloc[0] for name in _WHOSE}
    several = {name: _SEVERAL for name in _WHOSE if len(rows[name].unique()) > 1}
    return pd.DataFrame([whose | several | rows[_SUMS].sum().to_dict()])


def _holder(row: dict[Any, Any], why: str) -> tuple[Any, ...]:
    where = at(row["file"], row["line"])
    own = row["function"] == OURSELVES
    prefix = row["prefix"] or (OURSELVES if own else "(no task)")
    texts = row["function"] or f"(not seen: {why})", where, prefix
    function, line, prefix = (safe(text) for text in texts)
    amounts = (float(row[name]) for name in ("caused_s", "hold_s", "wait_s"))
    return (function, line, prefix, *amounts, safe(row["thread"]), safe(row["place"]))


def unseen(recording: Recording, found: pd.DataFrame) -> str:
    """Why it was not seen at which line somebody held it."""
    if any(why for _, _, why in recording.timeline.marks("gil holders")):
        return "py-spy could not look"
    if not (found["source"] == SPY).any():
        return "threads waited too little for py-spy to be asked"
    return "no look fell on it"


def waiters(recording: Recording, found: pd.DataFrame) -> pd.DataFrame:
    """Tasks by their prefix, event loops and other threads: how long, of how long, they waited."""
    mine = found[found["wait_s"] > 0]
    task = mine["prefix"] != ""
    mine = mine.assign(who=mine["prefix"].where(task, mine["thread"]), task=task)
    by = ["who", "place", "task"]
    sums: pd.DataFrame = mine.groupby(by, sort=False)[["wait_s"]].sum().reset_index()
    whole = _whole(recording)
    rows = [_waiter(row, whole, recording.wall) for row in sums.to_dict("records")]
    frame = pd.DataFrame(rows, columns=_WAITERS)
    return frame.sort_values("waited", ascending=False, ignore_index=True)


def _waiter(
    row: dict[Any, Any], whole: dict[tuple[str, str], float], wall: float
) -> tuple[Any, ...]:
    waited = float(row["wait_s"])
    of = whole.get((row["who"], row["place"]), 0.0) if row["task"] else wall
    between = ", between tasks" if row["who"].startswith("thread ") and not row["task"] else ""
    return safe(f"{row['who']}{between}"), safe(row["place"]), waited, _percent(waited, of)


def _whole(recording: Recording) -> dict[tuple[str, str], float]:
    """Seconds of the tasks of each prefix in each process."""
    tasks, on = recording.tasks(), recording.timeline.runs["wplace"]
    process = recording.timeline.gil.process
    called = Names(recording)
    names = {place: called.of(int(process[place]), 0)[0] for place in present(on)}
    places = [names.get(place, "") for place in on.tolist()]
    by = ["prefix", "place"]
    sums = tasks.assign(place=places).groupby(by)[["duration_s"]].sum().reset_index()
    rows = sums.to_dict("records")
    return {(row["prefix"], row["place"]): float(row["duration_s"]) for row in rows}


def _percent(part: float, whole: float) -> float:
    return round(min(100.0, 100 * part / whole), 1) if whole > 0 else float("nan")


# -- sentences ------------------------------------------------------------------------------------


def verdict(said: str) -> str:
    """The line of the summary as a sentence."""
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def missing(recording: Recording, said: str, *, watched: bool = False) -> str:
    """Why there is nothing to show; somebody may have watched, and seen nobody hold it."""
    if without_gil(recording):
        return "There is no GIL in this Python, so that no thread waits for it."
    if not said:
        why = "." if watched else ", and nobody watched the GIL."
        return f"No task ran in this recording{why}"
    if said.startswith("not watched"):
        return f"The GIL was {said}."
    return "Who held the GIL is not known."


def late(recording: Recording, samples: Samples) -> list[str]:
    """Event loops that waited so long that messages came late."""
    loops = recording.timeline.gil.loops
    waited = sorted(((seconds_of(spans), place) for place, spans in loops.items()), reverse=True)
    long = [(s, place) for s, place in waited if s >= max(LATE_S, 0.01 * recording.wall)]
    told = [_loop(samples, place, s) for s, place in long[:NAMED]]
    more = len(long) - len(told)
    return told + ([f"So did {count(more, 'more event loop')}."] if more else [])


def _loop(samples: Samples, place: int, waited: float) -> str:
    what = "transfers and messages" if samples.role(place) == "worker" else "messages"
    who = _the(samples, place)
    return f"The event loop of {who} waited {seconds(waited)}: {what} were late."


def sources(recording: Recording, samples: Samples, found: pd.DataFrame) -> list[str]:
    """Which processes were watched and how, and what is missing."""
    return [*_seen(recording, samples), *_lines(recording, samples, found), *_dropped(recording)]


def _seen(recording: Recording, samples: Samples) -> Iterator[str]:
    gil = recording.timeline.gil
    of: dict[str, list[int]] = {}
    for place in _first(recording):
        of.setdefault(gil.sources.get(int(gil.process[place]), ""), []).append(place)
    for source, places in sorted(of.items(), key=lambda pair: pair[0] != _WATCHED):
        watched = gil.watched(np.array(places))
        yield _how(_names(samples, places), source, watched=bool(watched.all()))


def _how(who: str, source: str, *, watched: bool) -> str:
    why = safe(source.removeprefix(_TICKER))
    if source == _WATCHED:
        return f"Seen by a process beside each, up to 100 times a second: {who}."
    if _FREE in source:
        return f"Without a GIL, so that no thread waits for it: {who}."
    if source and watched:
        return f"Seen by a process beside each until it ended ({why}): {who}."
    if source:
        return (
            f"Only asked from within how often it was taken, because {why}: {who}. "
            "Who held it there is not known, and who waited is estimated."
        )
    return f"Not watched: {who}."


def _lines(recording: Recording, samples: Samples, found: pd.DataFrame) -> Iterator[str]:
    """What names functions and lines."""
    reasons: dict[str, list[int]] = {}
    for _, place, why in recording.timeline.marks("gil holders"):
        if why:
            reasons.setdefault(why, []).append(place)
    for why, places in reasons.items():
        yield (
            f"py-spy could not see which line held it ({safe(why)}): {_names(samples, places)}. "
            "Lines there are what was seen from within."
        )
    if len(found) and not (found["source"] == SPY).any() and not reasons:
        yield "Threads waited too little for py-spy to be asked which lines held it."


def _dropped(recording: Recording) -> Iterator[str]:
    lost = [label for _, _, label in recording.timeline.marks("gil dropped") if label.isdecimal()]
    if lost:
        yield f"{count(sum(map(int, lost)), 'interval')} could not be sent and are missing."


# -- processes ------------------------------------------------------------------------------------


def _first(recording: Recording) -> list[int]:
    """A place of each process."""
    found: list[int] = np.unique(recording.timeline.gil.process, return_index=True)[1].tolist()
    return found


def _the(samples: Samples, place: int) -> str:
    label = samples.label(place)
    return label if samples.role(place) == "worker" else f"the {label}"


def _names(samples: Samples, places: Iterable[int]) -> str:
    """Processes by what their parts are called."""
    parts = Counter({samples.processes[place].pid: 0 for place in places})
    labels: dict[tuple[str, int], list[str]] = {pid: [] for pid in parts}
    for process in samples.processes:
        if process.pid in labels:
            labels[process.pid].append(process.label)
    names = [" and ".join(mine) for mine in labels.values()]
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
