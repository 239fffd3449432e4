"""What tasks were seen doing: by prefix, by the user's outermost function, by line, by kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.phrase import at
from stageprof_collectors.profiles.looks import place as parse
from stageprof_collectors.recording import Recording
from stageprof_collectors.text import safe
from stageprof_runtime.stack import CALL, LIBRARY, OBJECTS, PYTHON, ROW_LOOPS

#: Boxes that are drawn; what is narrower than all these cannot be seen.
BOXES: Final = 2_000
#: From the outside in.
LEVELS: Final = ("prefix", "entry", "line", "how")
#: All roles together.
ALL: Final = "all"

#: What a kind of work is, for those who do not know our words.
KINDS: Final[Mapping[str, str]] = {
    PYTHON: "runs Python bytecode and holds the GIL",
    CALL: "calls a function: bytecode or C code",
    LIBRARY: "runs C code without the GIL, or waits",
    OBJECTS: "works on an array of Python objects",
    **{loop: f"goes over rows or elements: {loop}" for loop in sorted(ROW_LOOPS)},
}
#: Grounds on which dark text is read without effort, on either theme.
_COLOURS: Final[Mapping[str, str]] = {
    PYTHON: "#f0a848", CALL: "#f3dc93", LIBRARY: "#9ccbe8", OBJECTS: "#dca3c2",
}  # fmt: skip
_LOOP, _UNKNOWN, _OUTER = "#f29277", "#c4c4c4", ("#bdbdbd", "#d2d2d2")

LEGEND: Final = (
    (_COLOURS[PYTHON], "Python bytecode: holds the GIL"),
    (_COLOURS[CALL], "a call: either"),
    (_COLOURS[LIBRARY], "C code without the GIL, or waiting"),
    (_COLOURS[OBJECTS], "arrays of Python objects"),
    (_LOOP, "a loop over rows or elements"),
)


@dataclass(frozen=True)
class Icicle:
    """Boxes whose lanes are depths.

    Attributes:
        boxes: left and right (seconds), depth, name, path (names from the outside in), looks, kind,
            colour; widest first.
        total: seconds of all looks.
        left_out: boxes too narrow to be drawn.
    """

    boxes: pd.DataFrame
    total: float
    left_out: int = 0

    def columns(self) -> dict[str, list[Any]]:
        """As the figure draws them: depth 0 at the top."""
        boxes, rows = self.boxes, len(LEVELS)
        return {
            "left": boxes["left"].tolist(),
            "right": boxes["right"].tolist(),
            "bottom": (rows - 1 - boxes["depth"]).tolist(),
            "top": (rows - boxes["depth"]).tolist(),
            **{name: boxes[name].tolist() for name in ("name", "path", "looks", "kind", "colour")},
            "alpha": [1.0] * len(boxes),
        }


def looks(recording: Recording) -> pd.DataFrame:
    """All looks, summed: role, prefix, entry, line ("file:line function"), how, looks, seconds."""
    table = recording.timeline.read("stack", "t")
    strings = np.array([*recording.store.strings, ""], dtype=object)
    roles = np.array([place.role for place in recording.store.places] or [""], dtype=object)
    fields = {"prefix": "name", "entry": "variable", "line": "label", "how": "how"}
    frame = pd.DataFrame({"role": table["place"], **{n: table[f] for n, f in fields.items()}})
    frame["looks"], frame["seconds"] = table["count"], table["total"] / 1e9
    keys = ["role", *fields]
    frame = frame.groupby(keys, as_index=False, sort=False)[["looks", "seconds"]].sum()
    frame["role"] = roles[frame["role"].to_numpy(np.int64)]
    for name in fields:
        frame[name] = strings[frame[name].to_numpy(np.int64)]
    return frame.groupby(keys, as_index=False)[["looks", "seconds"]].sum()


def icicles(found: pd.DataFrame) -> dict[str, Icicle]:
    """One for all roles together, and one for each that has looks."""
    out = {ALL: icicle(found)}
    for role in sorted(set(found["role"])):
        out[str(role)] = icicle(found[found["role"] == role])
    return out


def icicle(found: pd.DataFrame, most: int = BOXES) -> Icicle:
    """The boxes of some looks; where several are in one, the widest comes first."""
    levels = list(LEVELS)
    leaves = found.groupby(levels, as_index=False, sort=False)[["looks", "seconds"]].sum()
    leaves = _ordered(leaves[leaves["seconds"] > 0])
    leaves["right"] = leaves["seconds"].cumsum()
    leaves["left"] = leaves["right"] - leaves["seconds"]
    parts = [_level(leaves, depth) for depth in range(len(levels))]
    boxes = pd.concat(parts, ignore_index=True)
    boxes["width"] = boxes["right"] - boxes["left"]
    boxes = boxes.sort_values(["width", "depth"], ascending=[False, True], kind="stable")
    total = float(leaves["right"].iloc[-1]) if len(leaves) else 0.0
    return Icicle(boxes.head(most).reset_index(drop=True), total, max(len(boxes) - most, 0))


def _ordered(leaves: pd.DataFrame) -> pd.DataFrame:
    """The leaves so that those of one box are together, and the widest box comes first."""
    leaves, keys, up = leaves.copy(), [], []
    for depth, name in enumerate(LEVELS):
        outer = list(LEVELS[: depth + 1])
        leaves[f"_{name}"] = leaves.groupby(outer, sort=False)["seconds"].transform("sum")
        keys += [f"_{name}", name]
        up += [False, True]
    return leaves.sort_values(keys, ascending=up, ignore_index=True)


def _level(leaves: pd.DataFrame, depth: int) -> pd.DataFrame:
    """The boxes of one depth."""
    outer = list(LEVELS[: depth + 1])
    sums = {"left": "min", "right": "max", "looks": "sum", "how": "first"}
    grouped = leaves.groupby(outer, sort=False)
    boxes = grouped.agg(**{name: (name, how) for name, how in sums.items() if name != "how"})
    kinds = grouped["how"].first() if depth < len(LEVELS) - 1 else None
    of = boxes.index.to_frame(index=False)
    boxes = boxes.reset_index(drop=True)
    boxes["how"] = of["how"] if kinds is None else kinds.to_numpy()
    shown = [[_SHOWN[name](text) for name, text in row.items()] for row in of.to_dict("records")]
    boxes["depth"], boxes["name"] = depth, [parts[-1] for parts in shown]
    boxes["path"] = shown
    boxes["colour"] = [_colour(how, depth) for how in boxes["how"]]
    inner = depth >= LEVELS.index("line")
    boxes["kind"] = [_kind(how) if inner else "" for how in boxes["how"]]
    return boxes.drop(columns="how")


def _colour(how: str, depth: int) -> str:
    """Prefixes and functions are grey; lines have the colour of most of their looks."""
    if depth < len(_OUTER):
        return _OUTER[depth]
    return _LOOP if how in ROW_LOOPS else _COLOURS.get(how, _UNKNOWN)


def _kind(how: object) -> str:
    return KINDS.get(str(how)) or safe(how)


def line(label: str) -> str:
    """A line as it is shown: the file's name without its folders."""
    file, number, function = parse(label)
    where = at(file, number)
    if not where:
        return safe(label) if label else "(in no code of yours)"
    return safe(f"{where} {function}")


def lines(found: pd.DataFrame) -> pd.DataFrame:
    """The looks as a table, most seconds first."""
    frame = found.sort_values("seconds", ascending=False, ignore_index=True)
    total = max(float(frame["seconds"].sum()), 1e-12)
    return pd.DataFrame(
        {
            "prefix": [_SHOWN["prefix"](text) for text in frame["prefix"]],
            "entry": [_SHOWN["entry"](text) for text in frame["entry"]],
            "line": [line(text) for text in frame["line"]],
            "kind": [_kind(how) for how in frame["how"]],
            "role": [safe(role) for role in frame["role"]],
            "looks": frame["looks"],
            "seconds": frame["seconds"],
            "percent": (100 * frame["seconds"] / total).round(1),
        }
    )


def _or(instead: str) -> Callable[[str], str]:
    return lambda text: safe(text) if text else instead


#: How the names of each level are shown.
_SHOWN: Final[Mapping[Hashable, Callable[[str], str]]] = {
    "prefix": _or("(no name)"),
    "entry": _or("(no function of yours)"),
    "line": line,
    "how": _or("(unknown)"),
}
