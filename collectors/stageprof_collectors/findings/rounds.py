"""Loops that compute in each round, and what their rounds do again of the rounds before them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stageprof_collectors.account.calls import Calls
    from stageprof_collectors.findings.again import Again
    from stageprof_collectors.recording import Recording

#: Of what fewer rounds make it is not said that they build upon one another.
_ROUNDS: Final = 3

#: What tasks are of: file, line and prefix.
Made = tuple[str, int, str]


def looping(calls: Calls, graphs: Counter[int]) -> bool:
    """Whether lines that compute again and again did most of it, by each graph's tasks."""
    lines: Counter[tuple[str, int]] = Counter()
    for graph, tasks in graphs.items():
        lines[calls.line(graph)] += tasks
    loops = (n for (file, line), n in lines.items() if not line or calls.looped(file, line))
    return 2 * sum(loops) >= lines.total()


def built_upon(recording: Recording, again: Again) -> set[Made]:
    """What each round makes and all later ones do again: there is more of it in each of them.

    What was made before a loop is done again from one round on, and what one question makes of it
    not to the last.
    """
    groups, owner = recording.groups, recording.replay.owner
    seen: defaultdict[Made, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for layer, run in zip(again.of.tolist(), again.rows.tolist(), strict=True):
        if layer < len(recording.layered.names):
            row = groups.rows[int(groups.of_run[run])]
            seen[row.file, row.line, row.prefix][layer].add(int(owner[run]))
    return {what for what, layers in seen.items() if what[1] and _grows([*layers.values()])}


def _grows(layers: list[set[int]]) -> bool:
    """Whether there are layers from many graphs on, by the graphs that did each again."""
    last = max(map(max, layers))
    return len({min(graphs) for graphs in layers if last in graphs}) >= _ROUNDS
