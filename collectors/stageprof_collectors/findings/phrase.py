"""Phrases that headlines, fixes and cards share: where something is, its cost, what to call it."""

from __future__ import annotations

import keyword
import ntpath
from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from stageprof_collectors.findings.quantity import seconds, share, span

if TYPE_CHECKING:
    from stageprof_collectors.findings.finding import Finding
    from stageprof_collectors.recording import Recording

#: Names that begin so are spoken with a vowel: the letters of `nd` are said one by one.
_VOWELS: Final = ("a", "e", "i", "o", "A", "E", "I", "O", "nd")
#: What a finding saves that was made before a run.
_NOT_KNOWN: Final = "not known before a run"


def at(file: str, line: int) -> str:
    """A line of the user's as people write it: `etl.py:41`; "" if it is unknown."""
    return f"{ntpath.basename(file)}:{line}" if file and line else ""


def made_at(file: str, line: int, before: str = " at ") -> str:
    """The same after a word, or nothing."""
    where = at(file, line)
    return f"{before}{where}" if where else ""


def a_kind(type_: str) -> str:
    """A type's short name with its article: `a DataFrame`, `an Index`, `an ndarray`."""
    kind = type_.rpartition(".")[2] or "object"
    return f"{'an' if kind.startswith(_VOWELS) else 'a'} {kind}"


def introduced(
    type_: str, variable: str, made: str, *, of: str = "", unnamed: str = "", many: int = 1
) -> str:
    """What a sentence begins with: `` `weights`, a DataFrame of 8 MB made at etl.py:41, ``.

    The second comma only where there is a first one.

    Args:
        type_: its full name.
        variable: the user's name of it; "" if it has none.
        made: ` made at etl.py:41`, or nothing.
        of: ` of 8 MB`, or nothing.
        unnamed: a word to go before the type of what has no name.
        many: how many there are of them.
    """
    if many > 1:
        values = f"{many:,} values" + (f" of `{variable}`" if variable else "")
        return f"{values}, each {a_kind(type_)}{of}{made},"
    if variable:
        return f"`{variable}`, {a_kind(type_)}{of}{made},"
    plain = f"an {unnamed} {type_.rpartition('.')[2] or 'object'}" if unnamed else a_kind(type_)
    return f"{plain[0].upper()}{plain[1:]}{of}{made}"


def of_wall(cost_s: float, recording: Recording) -> str:
    """What something costs of the run: `6.1 s of 19.4 s`."""
    return f"{seconds(cost_s)} of {seconds(recording.wall)}"


class Worth(NamedTuple):
    """What acting on a finding saves, and what it costs meanwhile; no cost before a run."""

    saving: str
    cost: str

    @property
    def sentence(self) -> tuple[str, str, str]:
        """Both as a card says them: what is before the saving, the saving, and what is after it."""
        if not self.cost:
            return "what it saves is ", self.saving, ""
        return "saves ", self.saving, f", costs {self.cost}"


def worth(found: Finding, wall_s: float) -> Worth:
    """The amounts of a finding: `5.4-6.1 s`, `6.10 s (30 % of the run)`."""
    if not isfinite(found.cost_s):
        return Worth(_NOT_KNOWN, "")
    part = f" ({share(found.cost_s / wall_s)} of the run)" if wall_s > 0 else ""
    return Worth(span(*found.saving_s), f"{seconds(found.cost_s)}{part}")


def word(name: str, otherwise: str) -> str:
    """A name that can stand in printed code: the user's own if it is one, else another."""
    return name if name.isidentifier() and not keyword.iskeyword(name) else otherwise
