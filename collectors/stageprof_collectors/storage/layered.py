"""Which layer each of many keys is of, without a text for every key.

In Dask's sense: ("x-1a2b", 0, 1) is of layer x-1a2b, and a key that is a text is a layer by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

import numpy as np
from dask.utils import key_split
from numpy.typing import NDArray

from stageprof_collectors.garbage import no_collection
from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.storage.key import MAX_KEY, text_of_key

#: Names in keys up to this length are whole in the key's text, whatever follows them there.
_WHOLE: Final = MAX_KEY - 128
#: What a tuple's text escapes, or quotes in another way.
_ODD: Final = frozenset("'\\")
#: What the text of a tuple that begins with a name begins with; the second where that has a quote,
#: as names of a bag's fused tasks do: "lower-operator.methodcaller('split')-1a2b".
TUPLE: Final = ("('", '("')


class Layered:
    """The layers of keys.

    Attributes:
        names: the different layers, in the order of their first keys.
        of: for each key the index of its layer in `names`.
        chunked: for each key whether it is a tuple that begins with a text.
        alone: layers that are a key themselves.
    """

    def __init__(self, parts: Iterable[tuple[Ints, list[object]]], count: int) -> None:
        self.names: list[str] = []
        self.alone: set[str] = set()
        self._index: dict[str, int] = {}
        self._first = _First(self)
        stems: Ints = np.zeros(count, np.int64)
        with no_collection():
            for positions, keys in parts:
                stems[positions] = self._stems(keys)
        self.of = self._in_order(stems >> 1)
        self.chunked: NDArray[np.bool_] = (stems & 1).astype(np.bool_)

    @cached_property
    def prefixes(self) -> list[str]:
        """The prefix of each layer in `names`."""
        return [key_split(name) for name in self.names]

    def kinds(self) -> tuple[list[str], Ints]:
        """The different prefixes, in order, and for each key the number of its own.

        As an array of texts the prefixes of all keys would each be as long as the longest.
        """
        names, numbers = np.unique(np.array(self.prefixes, dtype=object), return_inverse=True)
        return names.tolist(), numbers[self.of]

    @cached_property
    def counts(self) -> Ints:
        """How many keys each layer in `names` has."""
        return np.bincount(self.of, minlength=len(self.names))

    def among(self, indices: Iterable[int]) -> NDArray[np.bool_]:
        """Which keys are of some layers, by their indices in `names`."""
        wanted = np.zeros(len(self.names), np.bool_)
        wanted[list(indices)] = True
        return wanted[self.of] if self.names else np.zeros(len(self.of), np.bool_)

    def prefixed(self, wanted: Callable[[str], object]) -> NDArray[np.bool_]:
        """Which keys are of layers whose prefix is wanted."""
        return self.among(i for i, prefix in enumerate(self.prefixes) if wanted(prefix))

    def texts(self) -> list[str]:
        """The layer of each key."""
        return [self.names[i] for i in self.of.tolist()]

    def _in_order(self, of: Ints) -> Ints:
        """Number the layers by their first keys; parts may have come in another order."""
        first = np.zeros(len(self.names), np.int64)
        first[of[::-1]] = np.arange(len(of))[::-1]
        order = np.argsort(first)
        self.names = [self.names[i] for i in order.tolist()]
        numbers = np.empty(len(order), np.int64)
        numbers[order] = np.arange(len(order))
        return numbers[of]

    def _stems(self, keys: list[object]) -> Ints:
        """Of each key twice the index of its layer, plus one if it is chunked."""
        try:
            found = self._of_lists(keys)
        except (TypeError, IndexError, AttributeError):  # not all are lists that begin with a text
            found = np.array([self._stem_of(key) for key in keys], np.int64)
        for i in np.flatnonzero(found < 0).tolist():
            found[i] = self._stem(keys[i])
        return found

    def _of_lists(self, keys: list[Any]) -> Ints:
        """The same without a step of Python's for each; -1: by its text."""
        if set(map(type, keys)) != {list}:
            raise TypeError
        firsts = map(itemgetter(0), keys)
        return np.fromiter(map(self._first.__getitem__, firsts), np.int64, len(keys))

    def _stem_of(self, key: object) -> int:
        if type(key) is list and key and type(key[0]) is str:
            return self._first[key[0]]
        return -1

    def _stem(self, key: object) -> int:
        """The same by the key's text."""
        text = text_of_key(key)
        layer = layer_of(text)
        if layer == text:
            self.alone.add(layer)
        return 2 * self._number(layer) + text.startswith(TUPLE)

    def _number(self, layer: str) -> int:
        index = self._index.setdefault(layer, len(self.names))
        if index == len(self.names):
            self.names.append(layer)
        return index


class _First(dict[str, int]):
    """What the first text of a tuple says of its layer; -1: the whole key must be looked at."""

    def __init__(self, layered: Layered) -> None:
        self._layered = layered

    def __missing__(self, name: str) -> int:
        whole = len(name) <= _WHOLE and name.isprintable() and not _ODD.intersection(name)
        stem = 2 * self._layered._number(name) + 1 if whole else -1
        self[name] = stem
        return stem


def layer_of(key: str) -> str:
    """The name in a key's text: of a tuple its first element, of a text itself."""
    end = key.find(key[1], 2) if key.startswith(TUPLE) else 0
    return key[2:end] if end > 0 else key
