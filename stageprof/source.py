"""Where settings come from: `pyproject.toml`, the environment, words of a command, an argument.

Each gives a table of the same form, `{"rules": {...}, "severity": {...}}`; what its names and
values mean is `configuration`'s affair.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from stageprof_runtime.errors import UsageError

#: The environment variable, with words as on the command line and commas between them.
VARIABLE: Final = "STAGEPROF_RULES"
#: Bytes of a pyproject.toml that are looked at; real ones have a few thousand.
_MOST: Final = 1_000_000
_WORDS: Final = {"on": True, "true": True, "off": False, "false": False}


class Source(NamedTuple):
    """A table of settings, and what messages call the place that it is from."""

    name: str
    table: Mapping[str, Any]


def environment() -> Source:
    """What `STAGEPROF_RULES` says."""
    return Source(VARIABLE, nested(os.environ.get(VARIABLE, "").split(","), VARIABLE))


def words(given: Iterable[str]) -> Source:
    """What the options `--rule` say."""
    return Source("--rule", nested(given, "--rule"))


def nested(given: Iterable[str], name: str) -> dict[str, Any]:
    """`tiny-tasks=off`, `embedded-object.share=0.02`, `severity.serious=0.2` as a table.

    Raises:
        UsageError: a word is not of this form.
    """
    table: dict[str, Any] = {}
    for word in filter(None, map(str.strip, given)):
        left, equals, value = (part.strip() for part in word.partition("="))
        if not (left and equals and value):
            raise UsageError(
                f"{word!r} in {name}", expected="RULE=off, RULE.LIMIT=NUMBER or severity.WORD=SHARE"
            )
        _put(table, left, value)
    return table


def _put(table: dict[str, Any], left: str, value: str) -> None:
    head, dot, limit = left.partition(".")
    if head == "severity" and dot:
        table.setdefault("severity", {})[limit] = _number(value)
        return
    rules = table.setdefault("rules", {})
    if not dot:
        rules.setdefault(head, {})["enabled"] = _WORDS.get(value.lower(), value)
    else:
        rules.setdefault(head, {})[limit] = _number(value)


def _number(value: str) -> float | str:
    try:
        return float(value)
    except ValueError:
        return value


def project(folder: Path | None = None) -> tuple[Source, str]:
    """`[tool.stageprof]` of the nearest `pyproject.toml` upwards, and a warning ("" if none).

    A file that cannot be read is as good as none: it may be half written, and is nobody's reason
    to lose a run.
    """
    path = _nearest(folder)
    if path is None:
        return Source("pyproject.toml", {}), ""
    try:
        whole = tomllib.loads(_text(path))
        table = whole.get("tool", {}).get("stageprof", {})
        return Source(str(path), table), ""
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        return Source(str(path), {}), _unreadable(path, error)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(_MOST + 1)
    if len(raw) > _MOST:
        raise ValueError(f"it has more than {_MOST:,} bytes")
    return raw.decode()


def _unreadable(path: Path, error: Exception) -> str:
    return (
        f"1 file of settings cannot be read: {path} ({error}); its [tool.stageprof] is not used, "
        f"the defaults are; correct the file, or run where it is not the nearest one; in Python "
        f"this warning is silenced by warnings.filterwarnings('ignore', '1 file of settings')"
    )


def _nearest(folder: Path | None) -> Path | None:
    try:
        here = (folder or Path.cwd()).absolute()
        paths = (parent / "pyproject.toml" for parent in (here, *here.parents))
        return next((path for path in paths if path.is_file()), None)
    except OSError:  # the working directory was removed, or a folder above may not be read
        return None
