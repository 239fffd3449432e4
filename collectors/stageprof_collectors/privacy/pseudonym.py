"""Other names for the user's: the same for the same throughout, and of the same make.

A text is replaced word by word, so that what one text has in common with another stays: a key with
its layer, a label with the file in it, an address with the worker's. What Dask and the rules tell
from the make of a name (letters only or not, a hash, where words are parted) stays as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

from stageprof_collectors.privacy.vocabulary import FOLDERS, WORD, public
from stageprof_collectors.rules.read_bandwidth import READS

_HOST: Final = r"(?<=://)(?:\[[^\]\s]*\]|[^\s/:\[\]]+)"
#: A UUID in two pieces: a layer's name may be its keys' up to the last dash.
_UUID: Final = r"(?<!\w)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}(?!\w)"
_UUID_END: Final = r"(?<=-)[0-9a-f]{12}(?!\w)"
_HASH: Final = r"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])"
_IP: Final = r"(?<!\w)\d{1,3}(?:\.\d{1,3}){3}(?!\w)"
#: A folder's name within a path: there may be blanks and colons in it, but no address begins there.
_NAME: Final = r"""(?:(?!://)[^/\\'"\t\n])+[/\\]+"""
#: Where a path begins: at its root, or with a name; a word that stands before it is none of it.
_ROOT: Final = r"(?:(?<!\w)[A-Za-z]:)?(?<!:/)[/\\]"
_FIRST: Final = r"(?<!\w)[^/\\\s:]{1,255}[/\\]+"
_FOLDER: Final = f"{_ROOT}(?:{_NAME})+|{_FIRST}(?:{_NAME})*"
#: Where a block of a text file begins, in the name that Dask gives it.
_OFFSET: Final = r"(?<=\bread-block-)\d+"
_PART: Final = re.compile(
    f"(?P<offset>{_OFFSET})|(?P<host>{_HOST})|(?P<folder>{_FOLDER})|(?P<uuid>{_UUID})|(?P<end>{_UUID_END})"
    f"|(?P<hash>{_HASH})|(?P<ip>{_IP})|(?P<word>{WORD.pattern})"
)

#: Addresses of one's own machine say nothing.
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "0.0.0.0", "[::1]"})  # noqa: S104 (a text)
#: A number of fewer digits is a block, a line, a version; a longer one may be somebody's.
_DIGITS: Final = 6
#: None of these makes a word that Dask takes for a hash, or that a rule looks for.
_LETTERS: Final = "qvwxz"


class Pseudonyms:
    """Gives names out, numbered in the order in which they are asked for.

    Args:
        kept: words that stay as they are.
    """

    def __init__(self, kept: Collection[str]) -> None:
        self._kept = kept
        self._given: dict[tuple[str, str], str] = {}
        self._texts: dict[tuple[str, bool], str] = {}

    def text(self, text: str, *, strict: bool = False) -> str:
        """The text with other names in it.

        Args:
            text: any.
            strict: whether words that are everybody's are replaced, too.
        """
        known = self._texts.get((text, strict))
        if known is None:
            known = _PART.sub(lambda found: self._part(found, strict=strict), text)
            self._texts[text, strict] = known
        return known

    def host(self, name: str) -> str:
        """Another name for a machine."""
        return name if name in _LOOPBACK or not name else self._new("host", name, _host)

    def number(self, value: float) -> float:
        """Another number of the same type, as it is in a text; a short whole one stays."""
        if isinstance(value, float):
            return float(self._new("fraction", repr(value), lambda n: f"{n}.5"))
        if abs(value) < 10 ** (_DIGITS - 1):
            return value
        return int(self._number(str(abs(value)))) * (-1 if value < 0 else 1)

    def _part(self, found: re.Match[str], *, strict: bool) -> str:
        part, kind = found[0], found.lastgroup or ""
        if kind == "folder":
            return self._folder(part)
        if kind in ("host", "ip"):
            return self.host(part)
        if kind == "uuid":
            return self._new(kind, part, lambda n: f"{n:08x}-0000-4000-8000")
        if kind in ("end", "hash"):
            return self._new(kind, part, lambda n: f"{n:0{len(part)}x}")
        if part.isdecimal():
            return part if kind == "offset" else self._number(part)
        return part if part in self._kept and not strict else self._word(part)

    def _folder(self, folder: str) -> str:
        """The way to a file: all of it is somebody's, down to a public package."""
        at = public(folder)
        private, rest = (folder[:at], folder[at:]) if at >= 0 else (folder, "")
        words = WORD.sub(lambda word: self._named(word[0]), private)
        return words + rest

    def _named(self, name: str) -> str:
        kept = name in FOLDERS or (name.isdecimal() and len(name) < _DIGITS)
        return name if kept else self._word(name)

    def _number(self, digits: str) -> str:
        width = len(digits)
        if width < _DIGITS:
            return digits
        return self._new(f"number{width}", digits, lambda n: f"1{n:0{width - 1}}")

    def _word(self, word: str) -> str:
        if not word.isalpha():
            return self._new("mixed", word, lambda n: _mixed(word, n))
        hexadecimal = len(word) == 8 and word[0] in "abcdef"
        make = (lambda n: _letters(n, "a", 8)) if hexadecimal else (lambda n: _alpha(word, n))
        return self._new("alpha", word, make)

    def _new(self, kind: str, name: str, make: Callable[[int], str]) -> str:
        given = self._given.get((kind, name))
        if given is None:
            given = self._given[kind, name] = make(len(self._given) + 1)
        return given


def _host(number: int) -> str:
    return f"host-{number}"


def _telling(word: str) -> str:
    """What in a word says that it reads; a rule goes by it."""
    found = READS.search(word)
    return found[0].lower() if found else ""


def _alpha(word: str, number: int) -> str:
    return _letters(number, _telling(word) or "name", 0)


def _mixed(word: str, number: int) -> str:
    begin = "" if word[0].isalpha() else "0"
    telling = _telling(word)
    return f"{begin}{telling}_{number}" if telling else f"{begin}name{number}"


def _letters(number: int, begin: str, width: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number, len(_LETTERS))
        letters = _LETTERS[rest] + letters
    return begin + letters.rjust(width - len(begin), _LETTERS[0])
