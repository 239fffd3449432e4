"""The flame graph as one page: drawn by a script of its own, which is all that the page may run."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

import stageprof_ui
from stageprof.pages import inline
from stageprof.pages.boxes import Boxes, boxes
from stageprof.recording import Recording
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.profiles.folded import place
from stageprof_collectors.profiles.session import NoLooks, looked
from stageprof_collectors.profiles.sides import Side, sides
from stageprof_collectors.profiles.stats import of_flame
from stageprof_collectors.text import safe
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS

#: Python, native code, waiting: grounds on which dark text is read without effort.
COLOURS: Final = ("#f0a848", "#9ccbe8", "#c9c9c9")
_MEANINGS: Final = (
    "Python: runs bytecode, or loops over rows or objects",
    "native: in a call, or in C code without the GIL",
    "waiting: uses no processor",
)
#: Only a scheduler's loop is looked at where no step has a name.
_LOOP: Final = f"{Stage.UNEXPLAINED} (the scheduler's loop at no step)"
_GREY: Final = {_LOOP: "#b5b5b5", str(Stage.OUTSIDE): "#b5b5b5"}

#: Functions in the table.
ROWS: Final = 100

_HERE: Final = Path(__file__).parent
_UI: Final = Path(str(stageprof_ui.__file__)).parent


def text(
    recording: Recording,
    stage: str | None = None,
    prefix: str | None = None,
    worker: str | None = None,
) -> str:
    """The page as HTML.

    Raises:
        NoLooks: nothing was seen of it.
        UsageError: there is no such stage, prefix or worker.
    """
    looked(recording, stage)
    found = [side for side in sides(recording, prefix, worker) if stage in (None, side.stage)]
    if not found:
        asked = ", ".join(filter(None, (stage, prefix, worker)))
        raise NoLooks(
            f"no look at {safe(asked)}", expected="looks at all of them together", do="ask for less"
        )
    return _page(recording, found, ", ".join(filter(None, (stage, prefix, worker))))


def _page(recording: Recording, found: list[Side], asked: str) -> str:
    drawn = boxes(side._replace(stage=_named(side.stage)) for side in found)
    label = recording.store.header.get("label") or recording.path or "recording"
    style, script = _style(), _script()
    stages = {_named(stage): colour for stage, colour in STAGE_COLOURS.items()} | _GREY
    page = Template((_HERE / "flame.html").read_text("utf-8"))
    return page.substitute(
        policy=inline.policy([script], [style]),
        title=safe(f"{label}: flame graph", "html"),
        heading=safe(label, "html"),
        facts=safe(_facts(drawn, asked), "html", limit=500),
        legend=_legend(),
        rows="".join(_rows(found, drawn.seconds)),
        data=inline.data(drawn.columns() | {"stages": stages, "colours": COLOURS}),
        style=style,
        script=script,
    )


def _named(stage: str) -> str:
    return _LOOP if stage == Stage.UNEXPLAINED else str(stage)


def _facts(drawn: Boxes, asked: str) -> str:
    what = f"{asked}: " if asked else ""
    told = (
        f"{what}{count(drawn.looks, 'look')}, which stand for {seconds(drawn.seconds)} of threads"
    )
    return f"{told}; {drawn.left_out:,} of the narrowest boxes left out" if drawn.left_out else told


def _legend() -> str:
    return "".join(f'<li><span class="c{i}"></span>{m}</li>' for i, m in enumerate(_MEANINGS))


def _rows(found: Iterable[Side], whole: float) -> Iterable[str]:
    """The functions with most time of their own, all sides together."""
    own: dict[tuple[str, int, str], list[float]] = {}
    for side in found:
        for function, figures in of_flame(side.flame).items():
            known = own.setdefault(function, [0.0, 0.0, 0])
            for i, figure in enumerate((figures[2], figures[3], figures[1])):
                known[i] += figure
    longest = sorted(own.items(), key=lambda item: -item[1][0])[:ROWS]
    for (file, line, name), (alone, total, looks) in longest:
        if alone <= 0:
            return
        where = place(file, line) if file != "~" else ""
        numbers = (seconds(alone), share(alone / whole), seconds(total), f"{int(looks):,}")
        cells = "".join(f'<td class="number">{text}</td>' for text in numbers)
        shown, at = safe(name, "html"), safe(where, "html")
        yield f'<tr><td>{shown}</td><td class="where">{at}</td>{cells}</tr>'


@cache
def _style() -> str:
    colours = "\n".join(f".c{i} {{ background: {c}; }}" for i, c in enumerate(COLOURS))
    return (_HERE / "flame.css").read_text("utf-8").replace("$colours", colours)


@cache
def _script() -> str:
    """Ours, after the words that the app's script has for numbers and texts."""
    words = (_UI / "browser" / "words.js").read_text("utf-8")
    own = (_HERE / "flame.js").read_text("utf-8")
    return f'"use strict";\n(() => {{\n{words}\n{own}}})();'


__all__ = ["COLOURS", "text"]
