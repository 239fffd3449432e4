"""A page for a terminal: lines that fit its width and its alphabet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from stageprof.tty import is_tty
from stageprof_collectors.text import safe

WIDTH: Final = 80
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = str.maketrans({"█": "#", "·": "-", "…": "~", **dict.fromkeys(_EIGHTHS[1:], "#")})
#: Marks a line that is left whole whatever its width, for it is there to be copied.
_WHOLE: Final = "ignore"
#: What stands before prose in a column of its own.
_HEAD: Final = re.compile(r".{0,11}  (?=\S)")


class Row(Text):
    """A line of a table, whose middle gives way where a terminal is narrow; its ends stay."""

    def __init__(self, head: Text, middle: Callable[[int], Text], cells: int, tail: str) -> None:
        """Lay it out as wide as it is readable; `middle` makes itself of so many cells."""
        super().__init__()
        self._parts = head, middle, cells, tail
        self.append_text(self.of(WIDTH))

    def of(self, width: int) -> Text:
        """The line on a terminal of so many columns."""
        head, middle, cells, tail = self._parts
        left = max(0, cells - max(0, WIDTH - width))
        return head.copy().append_text(middle(left)).append(tail, style="default")


def printed(lines: Iterable[Text], file: TextIO) -> None:
    """Print lines, at the width of the terminal but never wider than they are readable."""
    shown = console(file)
    shown.width = min(shown.width, WIDTH) if shown.is_terminal else WIDTH
    _print(shown, lines)


def console(file: TextIO) -> Console:
    """What prints to a file: colours are for terminals only."""
    return Console(
        file=file,
        highlight=False,
        markup=False,
        emoji=False,
        force_jupyter=False,
        # Else FORCE_COLOR, which CI sets for others, would colour what goes into a file.
        force_terminal=None if is_tty(file) else False,
    )


def plain(lines: Iterable[Text]) -> str:
    """Lines without colours, as one text."""
    out = io.StringIO()
    # In a notebook rich would show each line by itself, whatever the file.
    _print(
        Console(file=out, width=WIDTH, color_system=None, highlight=False, force_jupyter=False),
        lines,
    )
    return out.getvalue().rstrip("\n")


def _print(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        for part in _fitted(line, console):
            console.print(_spelled(part, console), no_wrap=True, overflow="ignore", crop=False)


def _fitted(line: Text, console: Console) -> Iterable[Text]:
    """A row gives way in its middle, and prose goes on in the next line."""
    if isinstance(line, Row):
        line = line.of(console.width)
    elif line.overflow != _WHOLE and console.width < WIDTH and cell_len(line.plain) > console.width:
        return _hanging(line, console)
    if line.overflow != _WHOLE:
        line.truncate(console.width, overflow="ellipsis")
    return [line]


def _hanging(line: Text, console: Console) -> Iterator[Text]:
    """Prose in lines that begin where the first does, behind its head."""
    head = _HEAD.match(line.plain)
    indent = head.end() if head else 0
    first, rest = line.divide([indent]) if indent else (Text(), line)
    for i, part in enumerate(rest.wrap(console, console.width - indent)):
        part.rstrip()
        yield (Text(" " * indent) if i else first).append_text(part)


def _spelled(line: Text, console: Console) -> Text:
    try:
        line.plain.encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        ascii_ = line.plain.translate(_ASCII).encode("ascii", "backslashreplace").decode()
        return Text(ascii_, style=line.style)
    return line


def whole(text: str, style: str = "") -> Text:
    """A line that nobody cuts: a command, code, a link."""
    return Text(text, style=style, overflow=_WHOLE)


def heading(left: str, right: str = "") -> Text:
    """A line of bold text, with something at its right end."""
    if not right:
        return Text(left, style="bold")
    room = WIDTH - cell_len(left) - cell_len(right)
    return Row(Text(left, style="bold"), lambda cells: Text(" " * cells), room, right)


def row(facts: Iterable[str]) -> Iterator[Text]:
    """Short facts side by side, as many in a line as there is room for."""
    line = ""
    for fact in (safe(fact, limit=WIDTH) for fact in facts):
        longer = f"{line} · {fact}" if line else fact
        if line and cell_len(longer) > WIDTH:
            yield Text(line)
            longer = fact
        line = longer
    yield Text(line)


def red(sentences: Iterable[str], limit: int) -> Iterator[Text]:
    """What the reader must know first: in one line, or else each sentence in lines of its own."""
    texts = [safe(sentence, limit=limit) for sentence in sentences]
    together = " · ".join(texts)
    for text in [together] if cell_len(together) <= WIDTH else texts:
        yield from (Text(line, style="bold red") for line in wrapped(text, WIDTH) if line)


def column(value: str, width: int) -> str:
    """The text in exactly so many cells; a wide character takes two."""
    if cell_len(value) > width:
        value = set_cell_size(value, width - 1) + "…"
    return set_cell_size(value, width)


def ending(value: str, width: int) -> str:
    """The end of the text in at most so many cells: of `file:line` the line is there."""
    while cell_len(value) > width:
        value = "…" + value[2:]
    return value


def several(parts: Sequence[str], limit: int, where: str = "") -> str:
    """As many of the parts as `limit` characters hold, and how many there are besides.

    Args:
        parts: the most important first, which is named in any case.
        limit: a third of it is for how many there are besides.
        where: said with it: where all are.
    """
    each = [safe(part, limit=limit * 2 // 3) for part in parts]
    if len("; ".join(each)) <= limit:
        return "; ".join(each)
    ends = accumulate(len(part) + 2 for part in each)
    named = max(1, sum(end <= limit * 2 // 3 for end in ends))
    return f"{'; '.join(each[:named])}; and {len(each) - named:,} more{where}"


def wrapped(value: str, width: int) -> list[str]:
    """The text in lines of so many cells; a word that is longer is broken."""
    console = Console(file=io.StringIO(), width=width, force_jupyter=False)
    return [line.plain.rstrip() for line in Text(value).wrap(console, width)] or [""]


def bar(part: float, cells: int) -> str:
    """A bar for a part of the whole, 0 to 1, which takes so many cells."""
    eighths = round(min(max(part, 0.0), 1.0) * cells * 8)
    full, rest = divmod(max(eighths, 1 if part > 0.00005 else 0), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
