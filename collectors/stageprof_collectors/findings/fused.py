"""What tasks begin with whose layer Dask fused with others: rows of CHAIN.

Such tasks have the name of the last layer, and what they return may be a sum of what they made. The
pieces that set their number are those of the first, at another line.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from dask.utils import key_split

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.loading import Ran

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stageprof_collectors.recording import Recording


class Begun(NamedTuple):
    """The first layer of a fused one, and its pieces."""

    row: Row
    number: int
    #: of a piece of it, bytes
    nbytes: int
    #: of the largest that its tasks make on the way, bytes
    largest: int


class _Link(NamedTuple):
    name: str
    number: int
    nbytes: int


def begun(recording: Recording) -> dict[str, Begun]:
    """What each layer that ran fused with others begins with, by the name it ran with.

    Of several chains that end in one layer it is the one with the largest pieces.
    """
    found: dict[str, Begun] = {}
    layers = Ran(recording)
    for links in _chains(recording):
        own: list[_Link] = []
        for link in links:
            ran = layers.of(link.name)[0]
            if ran and own and own[0].nbytes > (found[ran].nbytes if ran in found else -1):
                found[ran] = _begun(recording, own)
            own = [] if ran else [*own, link]
    return found


def _begun(recording: Recording, own: list[_Link]) -> Begun:
    first = own[0]
    row = Row(first.name, key_split(first.name), *recording.groups.line_of(first.name))
    return Begun(row, first.number, first.nbytes, max(link.nbytes for link in own))


def _chains(recording: Recording) -> Iterator[list[_Link]]:
    """The chains of all plans, from their sources on."""
    table, strings = recording.store.table("chain"), recording.store.strings
    names = ("t", "by_name", "name", "count", "nbytes")
    rows = zip(*(table[name].tolist() for name in names), strict=True)
    for _, links in groupby(rows, lambda row: row[:2]):
        yield [_Link(strings[name], number, nbytes) for _, _, name, number, nbytes in links]
