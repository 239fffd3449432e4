"""Lines of the layers that Dask makes within one operation, where nobody saw them made.

A join by P2P makes "hash-join-transfer-.." and "shuffle-barrier-.." as the scheduler takes in the
graph, an index into an array "shuffle-taker-..": they are there for the layer that uses them, and
are of its line. What was there before the recording began is not, and stays without a line.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from stageprof_collectors.tables.lines import UNKNOWN, Line, Lines

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: What the names of such layers begin with.
_WITHIN: Final = ("hash-join-", "shuffle-", "rechunk-")


def lines_of_layers(recording: Recording, lines: Lines) -> dict[str, Line]:
    """The line of each layer that ran; of one made within an operation, that of what uses it."""
    names = recording.layered.names
    found = [lines.of(name) for name in names]
    for i, place in _handed_over(recording, lines):
        found[i] = lines.handed_over(names[i], place)
    inner = [i for i, name in enumerate(names) if found[i] == UNKNOWN and name.startswith(_WITHIN)]
    users = _users(recording, inner) if inner else {}
    while users:
        told = {i: line for i in users if (line := _most(found, users[i])) != UNKNOWN}
        if not told:
            break
        for i, line in told.items():
            found[i] = line
            del users[i]
    return dict(zip(names, found, strict=True))


def _handed_over(recording: Recording, lines: Lines) -> Iterator[tuple[int, int]]:
    """Layers of a prefix that places made at different lines, each with the place it came from."""
    if not lines.disputed:
        return
    layered, timeline = recording.layered, recording.timeline
    numbers, first = np.unique(layered.of, return_index=True)
    for i, graph in zip(numbers.tolist(), timeline.graph_rows[first].tolist(), strict=True):
        submit = timeline.graphs[graph].submit if graph >= 0 else None
        if submit and layered.names[i].rpartition("-")[0] in lines.disputed:
            yield i, submit.place


def _users(recording: Recording, inner: list[int]) -> dict[int, Counter[int]]:
    """For each of some layers those that need it, and how often."""
    of, needs = recording.layered.of, recording.timeline.depends
    mine = np.isin(of[needs.on], inner)
    pairs = Counter(zip(of[needs.on[mine]].tolist(), of[needs.user[mine]].tolist(), strict=True))
    users: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for (layer, user), times in pairs.items():
        if user != layer:
            users[layer][user] = times
    return dict(users)


def _most(found: list[Line], users: Counter[int]) -> Line:
    """The line of most of those that have one."""
    lines: Counter[Line] = Counter()
    for user, times in users.items():
        if found[user] != UNKNOWN:
            lines[found[user]] += times
    return lines.most_common(1)[0][0] if lines else UNKNOWN
