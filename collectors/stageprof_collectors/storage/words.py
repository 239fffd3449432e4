"""The texts of a recording: every batch has its own list, here they become one."""

from __future__ import annotations

from array import array
from copy import copy
from typing import Final

import msgpack
import msgspec
import numpy as np

from stageprof_collectors.storage.columns import Ints
from stageprof_collectors.storage.key import printable

#: Lists of strings that are kept because places tend to send the same list again.
_REMEMBERED: Final = 4096
#: A longer list is unlikely to come again, bytes.
_LONG: Final = 4096

#: What a text takes as a str, in the index and in the list, bytes.
_TEXT_BYTES: Final = 250

_LIST: Final = msgspec.msgpack.Decoder(list[str])


class Words:
    """Interned texts, and for each batch's own indices what they mean."""

    def __init__(self) -> None:
        #: every text once; the first is ""
        self.texts: list[str] = [""]
        #: about how much memory the texts take, bytes
        self.bytes = 0
        self._index = {"": 0}
        self._meaning = array("q", [0])
        self._seen: dict[bytes, tuple[int, int]] = {}

    def add(self, packed: bytes) -> tuple[int, int]:
        """Take in the strings of one batch.

        Returns:
            The span that they got: text i of the batch (i < the second number) is what
            `meanings` maps the first number + i to.

        Raises:
            ValueError: it is no list of strings.
        """
        span = self._seen.get(packed)
        if span is None:
            texts = decode_texts(packed) or [""]
            span = len(self._meaning), len(texts)
            self._meaning.extend([self._intern(text) for text in texts])
            self._remember(packed, span)
        return span

    def meanings(self, positions: Ints) -> Ints:
        """Indices into `texts` by the positions that `add` gave out."""
        table: Ints = np.array(self._meaning, np.int64)
        return table.take(positions)

    def copy(self) -> Words:
        """The same texts in a list of their own."""
        other = copy(self)
        other.texts, other._index = self.texts.copy(), self._index.copy()
        other._meaning, other._seen = self._meaning[:], self._seen.copy()
        return other

    def _intern(self, text: str) -> int:
        index = self._index.get(text)
        if index is None:
            index = self._index[text] = len(self.texts)
            self.texts.append(text)
            self.bytes += _TEXT_BYTES + len(text)
        return index

    def _remember(self, packed: bytes, span: tuple[int, int]) -> None:
        if len(packed) <= _LONG:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[packed] = span


def decode_texts(packed: bytes) -> list[str]:
    """A msgpack array of texts -> the texts, lone surrogates escaped.

    Raises:
        ValueError: it is none.
    """
    try:
        return _LIST.decode(packed)
    except msgspec.ValidationError as error:
        raise ValueError("its strings are not texts") from error
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return _decode_odd(packed)


def _decode_odd(packed: bytes) -> list[str]:
    """Texts with lone surrogates, which places pack as they are and UTF-8 forbids."""
    try:
        texts = msgpack.unpackb(packed, unicode_errors="surrogatepass")
    except UnicodeDecodeError:
        texts = msgpack.unpackb(packed, unicode_errors="backslashreplace")
    except (msgpack.UnpackException, RecursionError) as error:
        raise ValueError("its strings cannot be decoded") from error
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its strings are not texts")
    return [printable(text) for text in texts]
