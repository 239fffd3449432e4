"""Layers of a graph that was not seen whole: they hold what those of their kind were seen to hold.

They have the same prefix, were made at the same line, and their messages are as large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from dask.utils import key_split

from stageprof_collectors.account.carriage import Layers
from stageprof_collectors.tables.lines import Line, Lines
from stageprof_collectors.tables.thing import Held, Thing, is_cut

if TYPE_CHECKING:
    from stageprof_collectors.recording import Recording

#: The marks that say of a graph, or of layers, that there was no time to look at them.
NOT_EXAMINED: Final = "objects not examined"
#: Why a graph was not seen whole.
_TOO_LONG: Final = " looking took too long"
#: So many layers show what is in others of their kind.
_MANY: Final = 10
#: An object that so much of them hold is in all, and a message with so much of its bytes has it.
_ALL: Final = 0.9

#: Prefix and line.
Kind = tuple[str, Line]


def cut_short(recording: Recording) -> set[str]:
    """The graphs that were not seen whole, as "graph 7"."""
    said = (text.partition(":") for _, _, text in recording.timeline.marks(NOT_EXAMINED))
    return {graph for graph, _, why in said if why.startswith(_TOO_LONG)}


def complete(recording: Recording, layers: Layers, found: list[Thing]) -> None:
    """Add the layers that were not seen to the objects of graphs that were cut short."""
    cut = [thing for thing in found if thing.cut]
    seen: defaultdict[Kind, set[str]] = defaultdict(set)
    for thing in cut:
        for held in thing.held:
            seen[_kind(held.layer, thing.lines)].add(held.layer)
    many = {kind: names for kind, names in seen.items() if len(names) >= _MANY}
    if many:
        unseen = _unseen(recording, many, cut[0].lines)
        for thing in cut:
            thing.held.extend(_more(thing, many, unseen, layers))


def _unseen(
    recording: Recording, seen: dict[Kind, set[str]], lines: Lines
) -> defaultdict[Kind, list[str]]:
    """The other layers of the kinds that were seen."""
    prefixes = {prefix for prefix, _ in seen}
    found: defaultdict[Kind, list[str]] = defaultdict(list)
    for name, prefix in zip(recording.layered.names, recording.layered.prefixes, strict=True):
        if prefix in prefixes and name not in seen.get(kind := _kind(name, lines), {name}):
            found[kind].append(name)
    return found


def _more(
    thing: Thing, seen: dict[Kind, set[str]], unseen: defaultdict[Kind, list[str]], layers: Layers
) -> list[Held]:
    whole = [held for held in thing.held if not is_cut(held.how)]
    holding = Counter(_kind(held.layer, thing.lines) for held in whole)
    kinds = [kind for kind, n in holding.items() if kind in seen and n >= _ALL * len(seen[kind])]
    least = _ALL * thing.nbytes
    alike = [n for kind in kinds for n in unseen[kind] if layers.message(n) >= least]
    return [Held(name, whole[0].how, 0) for name in alike]


def _kind(layer: str, lines: Lines) -> Kind:
    return key_split(layer), lines.of(layer)
