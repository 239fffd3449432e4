"""Labels of marks without the user's names: numbers stay, of what an exception said its kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from stageprof_collectors.privacy.pseudonym import Pseudonyms
from stageprof_runtime.ending import KINDS

#: Marks whose label is what an exception said: only its kind stays.
_SENTENCES: Final = frozenset({"cluster not joined", "cluster lost", "hook disabled"})
#: A text up to an amount, and the amount.
_AMOUNT: Final = re.compile(r"([^=]+)(=-?\d[\d.e+-]*(?=[,\t]|$))?")


class Labels:
    """The labels of one file, with names given out by `names`."""

    def __init__(self, names: Pseudonyms) -> None:
        self._text = names.text

    def of(self, label: str, mark: str) -> str:
        """The label of a mark."""
        if mark in _SENTENCES:
            kind, colon, _ = label.partition(":")
            return f"{self._text(kind)}{colon} (redacted)" if colon else self._text(label)
        if mark in _MARKS:
            return _MARKS[mark](self, label)
        return self._text(label)

    def _facts(self, label: str, facts: int) -> str:
        """An address, numbers, and the rest of the label, which is a name."""
        address, *rest = label.split(" ", facts + 1)
        return " ".join([self._text(address), *rest[:facts], *map(self._own, rest[facts:])])

    def _thread(self, label: str) -> str:
        """A thread's number and name."""
        number, blank, name = label.partition(" ")
        return f"{number}{blank}{self._text(name)}"

    def _waiting(self, label: str) -> str:
        """A thread's number, who waits on it, and for what."""
        thread, tab, rest = label.partition("\t")
        return f"{_only_numbers(thread)}{tab}{self._text(rest)}"

    def _amounts(self, label: str) -> str:
        """Who needs how much of which resources, and workers: the amounts stay."""
        return _AMOUNT.sub(lambda found: self._text(found[1]) + (found[2] or ""), label)

    def _reason(self, label: str) -> str:
        """An address, and what an exception said there."""
        address, blank, reason = label.partition(" ")
        return f"{self._text(address)}{blank}{self.of(reason, 'cluster lost')}"

    def _ending(self, label: str) -> str:
        """What a region was and its exit status stay; the type of an exception may be yours."""
        what, _, rest = label.partition("\t")
        name, _, status = rest.rpartition("\t")
        known = what if what in KINDS else ""
        return "\t".join((known, self._text(name), _only_numbers(status)))

    def _own(self, name: str) -> str:
        return self._text(name, strict=True)


#: How labels are made up that hold numbers, which stay, or what an exception said.
_MARKS: Final[dict[str, Callable[[Labels, str], str]]] = {
    "region start": lambda _, label: _only_numbers(label),
    "region stop": lambda _, label: _only_numbers(label),
    "loop thread": lambda _, label: _only_numbers(label),
    "left its thread": lambda _, label: _only_numbers(label),
    "gil dropped": lambda _, label: _only_numbers(label),
    "optimized": lambda labels, label: labels._facts(label, 2),
    "worker seen": lambda labels, label: labels._facts(label, 2),
    "worker killed": lambda labels, label: labels._facts(label, 1),
    "worker lost": lambda labels, label: labels._facts(label, 3),
    "worker name": lambda labels, label: labels._own(label),
    "thread": lambda labels, label: labels._thread(label),
    "waits since": lambda labels, label: labels._thread(label),
    "held up": lambda labels, label: labels._waiting(label),
    "no worker fits": lambda labels, label: labels._amounts(label),
    "not instrumented": lambda labels, label: labels._reason(label),
    "region raised": lambda labels, label: labels._ending(label),
}


def _only_numbers(label: str) -> str:
    return " ".join(word for word in label.split() if word.lstrip("-").isdecimal())
