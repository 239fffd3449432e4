"""The rules that there are: stageprof's own, and those of other packages.

Ours are the modules of the package `rules`. Another package offers some under the entry point
group `stageprof.rules`; each names a `Rule`, or a module with one in `RULE`. A rule that cannot be
had is known by its name and reason, and the others do their work.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import entry_points
from typing import Any, Final

from stageprof_collectors import rules
from stageprof_collectors.findings.rule import Limit, Rule

#: Under which other packages name their rules.
GROUP: Final = "stageprof.rules"
#: An id becomes a part of links, commands and settings.
_ID: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
#: The same for a limit's name.
_LIMIT: Final = re.compile(r"[a-z][a-z0-9_]*")

#: A name to show if it fails, and how to load it.
Source = tuple[str, Callable[[], Any]]


@dataclass
class Catalogue:
    """Rules by id, in the order of their ids, and why others could not be had."""

    rules: dict[str, Rule] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, load: Callable[[], Any]) -> None:
        """Take in what `load` returns, or note why not."""
        try:
            rule = _rule(load())
        except (Exception, SystemExit) as error:  # a third party's module may do anything
            self.failed[name] = f"{type(error).__name__}: {error}"
            return
        if self.rules.setdefault(rule.id, rule) is not rule:
            self.failed[name] = f"there is a rule {rule.id} already"


def known() -> Catalogue:
    """All rules, looked for anew."""
    found = Catalogue()
    for name, load in _ours():
        found.add(name, load)
    try:
        for name, load in _theirs():
            found.add(name, load)
    except Exception as error:  # the metadata of any installed package may be broken
        found.failed["rules of other packages"] = f"{type(error).__name__}: {error}"
    return Catalogue(dict(sorted(found.rules.items())), found.failed)


def _ours() -> Iterator[Source]:
    for module in pkgutil.iter_modules(rules.__path__):
        path = f"{rules.__name__}.{module.name}"
        yield module.name.replace("_", "-"), partial(importlib.import_module, path)


def _theirs() -> Iterator[Source]:
    """One package may be found twice, in a checkout and as installed: its rules count once."""
    for entry in sorted(set(entry_points(group=GROUP))):
        yield entry.name, entry.load


def _rule(thing: Any) -> Rule:
    """The rule itself, if it is one that can be used."""
    rule = thing if isinstance(thing, Rule) else getattr(thing, "RULE", None)
    if not isinstance(rule, Rule):
        raise TypeError(f"expected a Rule or a module with RULE, got {type(thing).__name__}")
    if not (isinstance(rule.id, str) and _ID.fullmatch(rule.id)):
        raise ValueError("its id is not in lower case with hyphens")
    if not callable(rule.find) or not _limits(rule.limits):
        raise TypeError("its find is no function, or its limits are no Limits by name")
    return rule


def _limits(limits: Any) -> bool:
    return isinstance(limits, Mapping) and all(
        isinstance(name, str) and _LIMIT.fullmatch(name) and isinstance(limit, Limit)
        for name, limit in limits.items()
    )
