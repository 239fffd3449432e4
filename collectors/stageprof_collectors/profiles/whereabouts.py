"""At which lines of code threads held and waited for the GIL, by what saw them there.

py-spy says where a holder stood while others waited. What it did not see is shared out by what the
looks from within the process saw of bytecode: of tasks by their prefix, of the region's thread and
of schedulers' loops by their stacks. Outside tasks looks are few, and come where the interpreter
lets a thread be looked at: there a line gets no more than the time for which it was seen.

What runs around a task's function is ours, and stands on the stack as that begins and ends: py-spy
sees a thread there that goes on into the function. So that tells nothing of where a task stood.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from stageprof_collectors.profiles.flame import PYTHON_SHARE, Frame, flame_of
from stageprof_collectors.profiles.gil import Names
from stageprof_collectors.profiles.looks import Looks, place
from stageprof_collectors.text import number
from stageprof_runtime.tree import is_ours

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What names the lines: py-spy, or the looks from within the process.
SPY, LOOKS = "py-spy", "looks"
SUMS: Final = ["hold_s", "wait_s", "caused_s"]
_WHERE: Final = ["file", "line", "function", "source"]
_WHOSE: Final = ["place", "thread", "prefix"]
#: Lines of one thread outside tasks; those at which it was seen less are one row.
MOST: Final = 20
OTHERS: Final = "(others)"
#: What our own functions are called, where they are, and how the names of our threads begin.
OURSELVES: Final = "stageprof itself"
_OWN: Final = ("", 0, OURSELVES, "")
_THREADS: Final = "stageprof-"
#: Looks at bytecode of a thread outside tasks from which on its lines are told.
LEAST: Final = 20
#: Less of a row is what sums of floats are off by.
_ROUND: Final = 1e-9
#: No file has more lines; a recording may claim any number.
_LINES: Final = 2**31 - 1


def by_line(recording: Recording, frame: pd.DataFrame) -> pd.DataFrame:
    """Functions and lines in place of labels; those that py-spy did not see, from the looks."""
    spied = _spied(recording, frame["label"])
    ours = frame["label"].isin(spied.index[spied["function"] == OURSELVES])
    known = (frame["label"] >= 0) & ~(ours & (frame["prefix"] != ""))
    seen, unseen = frame[known], frame[~known]
    other = _outside_tasks(recording)
    keys = pd.MultiIndex.from_frame(unseen[_WHOSE])
    outside = np.asarray(keys.isin(pd.MultiIndex.from_frame(other[_WHOSE])))
    parts = [
        seen.join(spied, on="label"),
        _shared_out(_as_seen(unseen[outside], other)),
        _shared_out(unseen[~outside].merge(_in_tasks(recording), on=["prefix"], how="left")),
    ]
    both = pd.concat([part for part in parts if len(part)], ignore_index=True)
    mine = both["thread"].str.startswith(_THREADS)
    for name, own in zip(_WHERE, _OWN, strict=True):
        both[name] = both[name].mask(mine, own)
    return both.astype({"line": int})


def _spied(recording: Recording, labels: pd.Series) -> pd.DataFrame:
    """Where py-spy saw threads, by label."""
    strings = recording.store.strings
    index = pd.Index(labels[labels >= 0].unique(), dtype=np.int64)
    places = [_place(strings[n]) for n in index]
    where = [_OWN if is_ours(place_[0]) else (*place_, SPY) for place_ in places]
    return pd.DataFrame(where, columns=_WHERE, index=index)


def _as_seen(frame: pd.DataFrame, shares: pd.DataFrame) -> pd.DataFrame:
    """Rows of no line with the shares of lines, none of more than was seen; the rest has none."""
    rows = frame.assign(row=np.arange(len(frame)))
    looked = rows.merge(shares, on=_WHOSE)
    held = looked["hold_s"].where(looked["hold_s"] > 0, np.inf)
    looked["share"] = np.minimum(looked["share"], looked["seconds"] / held)
    told = looked.groupby("row")["share"].sum()
    rest = rows.assign(share=1 - rows["row"].map(told).fillna(0.0))
    return pd.concat([looked, rest[rest["share"] > _ROUND]]).drop(columns=["row", "seconds"])


def _shared_out(looked: pd.DataFrame) -> pd.DataFrame:
    """Rows of no line, each divided among the lines that are known of it."""
    looked = looked.fillna({"file": "", "line": 0, "function": "", "source": "", "share": 1.0})
    looked[SUMS] = looked[SUMS].mul(looked["share"], axis=0)
    return looked


def _outside_tasks(recording: Recording) -> pd.DataFrame:
    """Of the region's thread and schedulers' loops the shares of their bytecode by line."""
    timeline, names = recording.timeline, Names(recording)
    region, places = timeline.region, recording.store.places
    loops = [(p, number(label)) for _, p, label in timeline.marks("loop thread")]
    looked_at = [(region.place, region.thread)] * (not region.attached)
    looked_at += [(p, thread) for p, thread in loops if places[p].role == "scheduler"]
    total: defaultdict[tuple[str, str], defaultdict[Frame, float]] = defaultdict(_zeros)
    for place_, thread in dict.fromkeys(looked_at):
        whose = names.of(int(timeline.gil.process[place_]), thread)
        for at, seconds in _seen_at(recording, place_).items():
            total[whose][at] += seconds
    rows = [
        (*whose, "", part / sum(lines.values()), part, at.file, _sound(at.line), at.name, LOOKS)
        for whose, lines in total.items()
        for at, part in lines.items()
    ]
    frame = pd.DataFrame(rows, columns=[*_WHOSE, "share", "seconds", *_WHERE])
    numbers: dict[str, type] = dict.fromkeys(("share", "seconds", "line"), float)
    return frame.astype(numbers | dict.fromkeys(_WHOSE, object))


def _seen_at(recording: Recording, place_: int) -> dict[Frame, float]:
    """Seconds for which a place was seen to run bytecode that is no task's, by function.

    Nothing where it was seen too seldom.
    """
    table, strings = recording.looked, recording.store.strings
    here = np.flatnonzero(table["place"] == place_)
    no_task = [row for row in here.tolist() if not strings[table["name"][row]]]
    found = flame_of(recording, np.array(no_task, np.int64))
    seconds, frames = found.own[PYTHON_SHARE], found.nodes.frames
    if found.looks[seconds > 0].sum() < LEAST:
        return {}
    lines = _zeros()
    for node in np.flatnonzero(seconds).tolist():
        lines[frames[node]] += float(seconds[node])
    order = sorted(lines, key=lambda at: -lines[at])
    told = {at: lines[at] for at in order[:MOST]}
    rest = sum(lines[at] for at in order[MOST:])
    return told | ({Frame(OTHERS, "", 0): rest} if rest else {})


def _zeros() -> defaultdict[Frame, float]:
    return defaultdict(float)


def _sound(line: int) -> int:
    return min(max(line, 0), _LINES)


def _in_tasks(recording: Recording) -> pd.DataFrame:
    """Of each prefix the shares of its bytecode by line, as the looks saw it."""
    looks = [look for look in Looks(recording).python() if look.seconds > 0]
    total: dict[str, float] = {}
    for look in looks:
        total[look.prefix] = total.get(look.prefix, 0.0) + look.seconds
    rows = [
        (k.prefix, k.seconds / total[k.prefix], k.file, min(k.line, _LINES), k.function, LOOKS)
        for k in looks
    ]
    frame = pd.DataFrame(rows, columns=["prefix", "share", *_WHERE])
    return frame.astype({"prefix": object, "share": float, "line": float})


def _place(label: str) -> tuple[str, int, str]:
    """File, line and function; nothing of what is no number."""
    try:
        file, line, function = place(label)
    except ValueError:  # "²" is a digit and no number
        return "", 0, ""
    return file, min(line, _LINES), function
