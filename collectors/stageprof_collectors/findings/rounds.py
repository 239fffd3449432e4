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

    What was made before a loop is done again from one round on.
    """
    groups, owner = recording.groups, recording.replay.owner
    begins: defaultdict[Made, dict[int, int]] = defaultdict(dict)
    for layer, run in zip(again.of.tolist(), again.rows.tolist(), strict=True):
        if layer < len(recording.layered.names):
            row, graph = groups.rows[int(groups.of_run[run])], int(owner[run])
            layers = begins[row.file, row.line, row.prefix]
            layers[layer] = min(graph, layers.get(layer, graph))
    return {
        what for what, layers in begins.items() if what[1] and len({*layers.values()}) >= _ROUNDS
    }
