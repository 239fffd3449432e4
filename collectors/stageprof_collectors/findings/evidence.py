"""What shows a finding, as its reader wants it: names in words, numbers with their units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Final

from stageprof_collectors.findings.finding import Finding
from stageprof_collectors.findings.quantity import seconds, share, size
from stageprof_collectors.text import Form, safe

#: What the ending of a name says of its number, and what is left of the name; rates come first,
#: for they end as durations do.
_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "bytes_per_s": lambda value: f"{size(value)}/s",
    "_per_s": lambda value: f"{value:,.3g}/s",
    "_s": seconds,
    "_bytes": size,
    "_share": share,
}

#: From here on nobody wants fractions, nor powers of ten.
WHOLE: Final = 1000.0


def shown(evidence: Mapping[str, float | int | str], form: Form) -> list[tuple[str, str]]:
    """Names and values, safe to show."""
    return [_pair(name, value, form) for name, value in evidence.items()]


def _pair(name: str, value: float | str, form: Form) -> tuple[str, str]:
    if isinstance(value, str):
        return _name(name, form), safe(value, form)
    if name.startswith("share_of_"):
        return _name(name, form), _safe(share(value), form)
    for ending, unit in _UNITS.items():
        if name.endswith(ending):
            keep = name if ending == "_share" else name.removesuffix(ending).rstrip("_")
            return _name(keep or "rate", form), _safe(unit(value), form)
    whole = isinstance(value, int) or abs(value) >= WHOLE
    number = f"{value:,.0f}" if whole else f"{value:.3g}"
    return _name(name, form), number


def _safe(value: str, form: Form) -> str:
    """What a unit made of a number: of what is not safe it can hold a `<` only."""
    return escape(value) if form == "html" else value


def _name(name: str, form: Form) -> str:
    return safe(name.replace("_", " "), "prose" if form == "markdown" else form)


def places(found: Finding) -> list[tuple[str, str]]:
    """Where it is in the user's program: what and which, as recorded; what is unknown is left out.

    Nothing of it is safe to show yet.
    """
    where = found.where
    line = f"{where.file}:{where.line}" if where.file else ""
    named = (
        ("line", line),
        ("variable", where.variable),
        ("layer", where.layer),
        ("tasks", where.prefix),
    )
    return [(name, value) for name, value in named if value]
