"""A function of the user's that the scheduler's event loop runs, and that keeps it from all else.

`run_on_scheduler` hands one over, and a plugin has hooks. Which it is, looks at the loop say. Where
a program is asynchronous, and its cluster with it, the loop is the program's own, and what a
coroutine calls holds both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stageprof_collectors.findings.finding import Finding, Fix, Where, severity
from stageprof_collectors.findings.phrase import made_at, of_wall, word
from stageprof_collectors.findings.quantity import seconds
from stageprof_collectors.findings.rule import Ground, Limit, Limits, Rule
from stageprof_collectors.findings.standing import Standing, released, seconds_of, stood
from stageprof_collectors.profiles.inside import NONE, kinds_of
from stageprof_collectors.profiles.nodes import Frame
from stageprof_collectors.replay.relief import Interval
from stageprof_runtime.stage import Stage
from stageprof_runtime.stopped import WAITING

if TYPE_CHECKING:
    from stageprof_collectors.account.timeline import Ints
    from stageprof_collectors.recording import Recording

#: What is seen of a loop is told every half second, and late where it is held: so long after, ns.
_TOLD_NS: Final = 1_000_000_000

#: A file of the user's that is run as the scheduler imports it, to unpickle what is of it.
_IMPORTED: Final = "<module>"

_TEXT: Final = (
    "Every message of every task goes through the scheduler's event loop, which did nothing else "
    "while it ran `{name}`. Have it only bring what is needed, and do what takes long in your own "
    "program with that; or, if it touches nothing of the scheduler's meanwhile, let a thread run "
    "it (the code below). What a hook of a plugin does that takes long goes into a queue, which a "
    "thread of the plugin's works off."
)
_CODE: Final = """\
import asyncio
import functools

@functools.wraps({name})
async def {name}_in_thread(*args, **kwargs):  # for client.run_on_scheduler, in its place
    return await asyncio.to_thread({name}, *args, **kwargs)"""
_OWN_TEXT: Final = (
    "The cluster is asynchronous, so its scheduler runs on the event loop of your program: while "
    "that runs `{name}`, no task is handed out, and no result comes in. Let a thread run it (the "
    "code below, in the coroutine that has it called), and do not wait for that before you hand "
    "over what comes next: in a task of its own (`asyncio.create_task`) it goes on beside."
)
_OWN_CODE: Final = """\
import asyncio

async def {name}_in_thread(*args, **kwargs):  # await it, or give it to asyncio.create_task
    return await asyncio.to_thread({name}, *args, **kwargs)"""


class Looks(NamedTuple):
    """Looks at schedulers' loops that saw a function of the user's.

    Attributes:
        t: when they were told of, ns.
        place: of which scheduler.
        frame: the number of the function of the user's.
        took: ns.
    """

    t: Ints
    place: Ints
    frame: Ints
    took: Ints

    def during(self, place: int, start: int, stop: int) -> NDArray[np.bool_]:
        """Those that tell of a time of a scheduler's."""
        mine: NDArray[np.bool_] = self.place == place
        return mine & (self.t > start) & (self.t <= stop + _TOLD_NS)


def find(recording: Recording, limits: Limits) -> Iterator[Finding]:
    """One for what holds a scheduler longest."""
    told = _long(recording, limits["own_s"])
    if not told:
        return
    frames = _functions(recording)
    own = _within(recording, frames)
    shared = _shared(recording, own)
    if shared:
        yield from _of_program(recording, frames, own, shared, limits)
        return
    looks = _at(recording, _places(recording, "scheduler"), _outermost(recording, frames))
    held = _seen(_long(recording, limits["stall_s"]), looks, limits)
    found = released(recording, held, limits["share"]) if held else None
    if found is not None:
        by = frames[_most(looks, held)]
        yield _finding(recording, held, by, *found, _TEXT, _CODE)


def _of_program(
    recording: Recording, frames: list[Frame], within: Ints, shared: set[int], limits: Limits
) -> Iterator[Finding]:
    """What a coroutine of the program calls, while tasks were still to come or to end.

    All that may go on beside, if anything may; and what waits, side by side in several threads.
    """
    looks = _at(recording, shared, within)
    last = int(recording.timeline.runs["stop"].max(initial=0))
    told = _kept(_long(recording, limits["own_s"]), lambda _, start, __: start < last)
    held = _seen(told, looks, limits)
    if not held:
        return
    cost, by = sum(map(seconds_of, held.values())), _most(looks, held)
    waits = cost * _waiting(recording, within, by)
    saved = 0.0, waits + min(cost - waits, recording.wall - cost)
    if saved[1] >= limits["share"] * recording.wall:
        yield _finding(recording, held, frames[by], cost, saved, _OWN_TEXT, _OWN_CODE)


def _waiting(recording: Recording, within: Ints, frame: int) -> float:
    """The part of a function's time in which a program's thread had no use for a processor."""
    flame, strings = recording.timeline.read("flame", "t"), recording.store.strings
    mine = np.isin(flame["place"], list(_places(recording, "client")))
    mine &= within[recording.nodes.of(flame["place"], flame["node"])] == frame
    took = flame["total"][mine]
    waits = np.array([strings[i] == WAITING for i in flame["how"][mine].tolist()], np.bool_)
    return float(took[waits].sum() / max(1, took.sum()))


def _seen(told: Standing, looks: Looks, limits: Limits) -> Standing:
    """Of times those in which functions of the user's were seen for enough of it."""
    return _kept(
        told,
        lambda *when: looks.took[looks.during(*when)].sum() >= limits["seen"] * (when[2] - when[1]),
    )


def _shared(recording: Recording, within: Ints) -> set[int]:
    """Schedulers on the loop of a program: at both the same functions of its are seen."""
    places, clients = recording.store.places, _places(recording, "client")
    seen = {
        (places[place].pid, frame)
        for place in clients
        for frame in np.unique(_at(recording, {place}, within).frame).tolist()
    }
    return {
        place
        for place in _places(recording, "scheduler")
        for frame in np.unique(_at(recording, {place}, within).frame).tolist()
        if (places[place].pid, frame) in seen
    }


def _places(recording: Recording, role: str) -> set[int]:
    return {i for i, place in enumerate(recording.store.places) if place.role == role}


def _long(recording: Recording, stall_s: float) -> dict[int, list[Interval]]:
    """When schedulers' loops did not come to anything for long."""
    places = recording.store.places
    told = stood(recording, "loop.stall_s")
    mine = {place: spans for place, spans in told.items() if places[place].role == "scheduler"}
    return _kept(mine, lambda _, start, stop: stop - start >= stall_s * 1e9)


def _kept(told: Standing, which: Callable[[int, int, int], bool]) -> dict[int, list[Interval]]:
    """Of times of places those of which `which` is true, given the place and both ends."""
    found = {p: [(a, b) for a, b in spans if which(p, a, b)] for p, spans in told.items()}
    return {place: spans for place, spans in found.items() if spans}


def _functions(recording: Recording) -> list[Frame]:
    """The functions of the user's that were seen."""
    users = (frame for frame in dict.fromkeys(recording.nodes.frames) if frame.is_users)
    return [frame for frame in users if frame.name != _IMPORTED]


def _outermost(recording: Recording, frames: list[Frame]) -> Ints:
    """Of each node of the tree of stacks the number of the outermost of some functions."""
    return kinds_of(recording.nodes, {frame: i for i, frame in enumerate(frames)})


def _within(recording: Recording, frames: list[Frame]) -> Ints:
    """As `_outermost`, of the innermost one that has a name."""
    nodes = recording.nodes
    numbers = {f: i for i, f in enumerate(frames) if f.name.rpartition(".")[2].isidentifier()}
    found = np.full(len(nodes), NONE, np.int64)
    for node, (frame, around) in enumerate(zip(nodes.frames, nodes.parent.tolist(), strict=True)):
        found[node] = numbers.get(frame, found[around] if around >= 0 else NONE)
    return found


def _at(recording: Recording, places: set[int], of_node: Ints) -> Looks:
    """Looks at places that saw one of the functions that each node is given."""
    nodes, flame = recording.nodes, recording.timeline.read("flame", "t")
    of = of_node[nodes.of(flame["place"], flame["node"])]
    mine = np.isin(flame["place"], list(places)) & (of != NONE)
    columns = flame["t"], flame["place"], of, flame["total"]
    return Looks(*(column[mine] for column in columns))


def _most(looks: Looks, held: Standing) -> int:
    """The function that was seen most while it held a scheduler."""
    mine = np.zeros(len(looks.t), np.bool_)
    for place, spans in held.items():
        for start, stop in spans:
            mine |= looks.during(place, start, stop)
    return int(np.argmax(np.bincount(looks.frame[mine], looks.took[mine])))


def _finding(
    recording: Recording,
    held: Standing,
    by: Frame,
    cost: float,
    saved: tuple[float, float],
    text: str,
    code: str,
) -> Finding:
    spans = [span for mine in held.values() for span in mine]
    name = by.name.rpartition(".")[2]
    longest = max(stop - start for start, stop in spans) / 1e9
    return Finding(
        rule=RULE.id,
        severity=severity(saved, recording.wall),
        headline=(
            f"The scheduler's event loop did nothing but run `{name}`{made_at(by.file, by.line)} "
            f"for {seconds(seconds_of(spans))} (up to {seconds(longest)} at a time): "
            f"{of_wall(cost, recording)}"
        ),
        stage=Stage.SCHEDULING,
        evidence={
            "held_s": seconds_of(spans),
            "longest_s": longest,
            "times": len(spans),
            "holder": name,
        },
        cost_s=cost,
        saving_s=saved,
        fix=Fix(text.format(name=name), code.format(name=word(name, "the_function"))),
        where=Where(by.file, by.line),
        cause=f"line:{by.file}:{by.line}",
    )


RULE = Rule(
    id="scheduler-held",
    stage=Stage.SCHEDULING,
    summary="The scheduler's event loop runs a function of yours that takes long.",
    find=find,
    ground=Ground.CROWDED,
    limits={
        "stall_s": Limit(0.1, "shorter stalls come and go on any machine that has much to do"),
        "own_s": Limit(0.05, "likewise, of the loop of an asynchronous program"),
        "seen": Limit(0.5, "of a stall, in which the function was seen: else something else did"),
        "share": Limit(0.03, "of the wall time on the critical path: less is not worth a change"),
    },
    instead_of=frozenset({"event-loop-blocked"}),
)
