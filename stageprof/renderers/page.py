"""A page for a terminal: lines that fit its width and its alphabet."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, TextIO

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

from stageprof.tty import is_tty
from stageprof_collectors.text import safe

#: Columns of what goes into a file or a pipe.
WIDTH: Final = 80
#: Those that tables take where a terminal has them, and those of lines that are read.
WIDEST: Final = 120
READABLE: Final = 100
#: Cells of a line of prose on whatever terminal.
_NARROWEST: Final = 8
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"
_ASCII: Final = str.maketrans({"█": "#", "·": "-", "…": "~", **dict.fromkeys(_EIGHTHS[1:], "#")})
#: Marks a line that is left whole whatever its width, for it is there to be copied.
_WHOLE: Final = "ignore"
#: Cells between both ends of a heading, at least.
_GAP: Final = 2
#: Where a line may end: at a blank, but not between a number and its unit.
_BLANK: Final = re.compile(r"(?<!\d) | (?!(?:%|[kMGT]?B|h|min|m?s)(?!\w))")
#: What stands before prose in a column of its own.
_HEAD: Final = re.compile(r".{0,11}  (?=\S)")


class Laid(Text):
    """What lays itself out by the width of the terminal, in one line or several."""

    def __init__(self, of: Callable[[int], Iterable[Text]]) -> None:
        """As text it is what `of` makes of the usual width."""
        super().__init__()
        self.of = of
        self.append_text(Text("\n").join(of(WIDTH)))


class Row(Laid):
    """A line of a table, whose middle takes what room there is; its ends stay."""

    def __init__(self, head: Text, middle: Callable[[int], Text], cells: int, tail: str) -> None:
        """Of `cells` in the middle at the usual width; `middle` makes itself of so many cells."""

        def of(width: int) -> Iterator[Text]:
            left = max(0, cells + width - WIDTH)
            yield head.copy().append_text(middle(left)).append(tail, style="default")

        super().__init__(of)


def prose(head: Text, said: str, indent: int, style: str = "", *, most: int = 0) -> Laid:
    """Sentences beside their head and below that.

    Args:
        head: takes `indent` cells, or none.
        said: safe to print.
        indent: the cell in which each line begins.
        style: that of what is said.
        most: lines at the usual width, so that what is longer is cut; 0 is all.
    """

    def of(width: int) -> Iterator[Text]:
        width = min(width, READABLE)
        whole = _cut(said, max(width, WIDTH) - indent, most) if most else said
        for i, line in enumerate(wrapped(whole, max(width - indent, _NARROWEST))):
            start = Text(" " * indent) if i else head.copy()
            yield start.append(line, style=style or "default")

    return Laid(of)


def _cut(said: str, width: int, most: int) -> str:
    """As much of it as so many lines hold."""
    kept = wrapped(said, width)
    if len(kept) <= most:
        return said
    last = kept[most - 1]
    while cell_len(last) > width - 2:
        last = last.rpartition(" ")[0] or set_cell_size(last, width - 2)
    return " ".join([*kept[: most - 1], f"{last} …"])


def height(lines: Iterable[Text]) -> int:
    """How many lines they take at the usual width."""
    return sum(line.plain.count("\n") + 1 for line in lines)


def printed(lines: Iterable[Text], file: TextIO) -> None:
    """Print lines, at the width of the terminal but never wider than they are readable."""
    shown = console(file)
    shown.width = min(shown.width, WIDEST) if shown.is_terminal else WIDTH
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


def _fitted(line: Text, console: Console) -> Iterator[Text]:
    """What lays itself out does, and on a narrow terminal prose goes on in the next line."""
    narrow = console.width < WIDTH and cell_len(line.plain) > console.width
    if isinstance(line, Laid):
        parts = line.of(console.width)
    else:
        parts = _hanging(line, console) if narrow and line.overflow != _WHOLE else [line]
    for part in parts:
        if part.overflow != _WHOLE:
            part.truncate(console.width, overflow="ellipsis")
        yield part


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

    def of(width: int) -> Iterator[Text]:
        gap = width - cell_len(left) - cell_len(right)
        together = [f"{left}{' ' * gap}{right}"] if gap >= _GAP else [left, *wrapped(right, width)]
        yield from (Text(line, style="bold") for line in together)

    return Laid(of)


def row(facts: Iterable[str]) -> Text:
    """Short facts side by side, as many in a line as there is room for."""
    known = list(facts)
    return Laid(lambda width: _side_by_side(known, width))


def _side_by_side(facts: Iterable[str], width: int) -> Iterator[Text]:
    line = ""
    for fact in (safe(fact, limit=WIDTH) for fact in facts):
        longer = f"{line} · {fact}" if line else fact
        if line and cell_len(longer) > width:
            yield from map(Text, wrapped(line, width))
            longer = fact
        line = longer
    yield from map(Text, wrapped(line, width))


def red(sentences: Iterable[str], limit: int) -> Iterator[Text]:
    """What the reader must know first: in one line, or else each sentence in lines of its own."""
    texts = [safe(sentence, limit=limit) for sentence in sentences]
    together = " · ".join(texts)
    for text in [together] if cell_len(together) <= WIDTH else texts:
        if text:
            yield prose(Text(), text, 0, "bold red")


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
    """The text in lines of so many cells, numbers with their units; a longer word is broken."""
    lines = [""]
    for word in _BLANK.split(value):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if cell_len(longer) <= width:
            lines[-1] = longer
        else:
            lines += chop_cells(word, width)
    return [line.rstrip() for line in (lines if lines[0] else lines[1:] or lines)]


def bar(part: float, cells: int) -> str:
    """A bar for a part of the whole, 0 to 1, which takes so many cells."""
    eighths = round(min(max(part, 0.0), 1.0) * cells * 8)
    full, rest = divmod(max(eighths, 1 if part > 0.00005 else 0), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")
