"""The only place that makes hostile text harmless: a task's key may be any text whatever.

Dask accepts keys that hold HTML, terminal escapes, newlines, right-to-left marks or a megabyte,
and a recording may come from a stranger. Every text of a recording passes here before it is shown.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Final, Literal

Form = Literal["terminal", "markdown", "prose", "html", "sentence"]

#: Characters that a text is cut to, unless the caller says otherwise.
LIMIT: Final = 120

#: Other (controls, formats such as bidirectional overrides, surrogates), and line separators.
_ACTIVE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def number(text: str) -> int:
    """The whole number that a text of a recording says; -1 if it says none that fits 64 bits."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1


def line_of(text: str) -> tuple[str, int]:
    """File and line that a text of a recording says as "file:line"; ("", 0) if it says none."""
    file, _, line = text.rpartition(":")
    return (file, number(line)) if number(line) >= 0 else ("", 0)


def safe(text: object, form: Form = "terminal", *, limit: int = LIMIT) -> str:
    r"""The text on one line, with nothing in it that acts on whoever shows it.

    Control characters and those that reorder or hide text appear as `\xNN`, `\uNNNN` or
    `\UNNNNNNNN`; what is longer than `limit` ends in "…".

    Args:
        text: anything; what is no text is shown as `str` does.
        form: where it goes. "markdown" is a code span that may stand in a table: no link, no
            mention and no HTML begins in it. "prose" is markdown too, for sentences: only words
            that might act are code spans. "html" is escaped for content and quoted attributes.
            "sentence" is HTML too, for content: what is between backticks is code.
        limit: how many characters are kept.
    """
    whole = str(text)
    shown = _cut(visible(whole[: limit + 1]), limit)
    if form == "markdown":
        return _code_span(shown)
    if form == "prose":
        return _prose(shown)
    if form == "sentence":
        return _sentence(html.escape(shown))
    return html.escape(shown) if form == "html" else shown


def _sentence(escaped: str) -> str:
    parts = escaped.split("`")
    if len(parts) % 2 == 0:  # one backtick is left over: none of them means code
        return escaped
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def visible(text: str) -> str:
    r"""The whole text with every character that could act as `\xNN`, `\uNNNN` or `\UNNNNNNNN`."""
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(char: str) -> str:
    code = ord(char)
    if unicodedata.category(char) not in _ACTIVE and not _no_character(code):
        return char
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _no_character(code: int) -> bool:
    """Whether it is one of the codes that are never characters; XML forbids some of them."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _code_span(text: str) -> str:
    r"""Fenced by more backticks than it holds in a row; GitHub reads `\|` in a table as `|`."""
    if not text.strip():
        return "` `"
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    edge = " " if longest else ""
    escaped = text.replace("|", "\\|")
    return f"{fence}{edge}{escaped}{edge}{fence}"


#: A word in which nothing of markdown begins, nor a link, a mention or a number of an issue: that
#: is GH-26 at GitHub, too, GL-26 at GitLab, whose milestones are %26 and %name.
_HARMLESS: Final = re.compile(
    r"""(?!.*(www\.|//|(?<![^\W_])g[hl]-\d|%[\w"]))(\(?<(?=\d))?"""
    r"""([^\W_]|[(%'"])([^\W_]|[,.;:()%'"/=+-])*|[,.;:)]+|·""",
    re.IGNORECASE,
)
#: What the text itself has between backticks, blanks, the points after a word, and words.
_PIECES: Final = re.compile(r"`[^`]+`| +|[,.;:)]+(?= |$)|[^ `]+?(?=[,.;:)]*(?:[ `]|$))|`")


def _prose(text: str) -> str:
    out = ""
    for piece in _PIECES.findall(text):
        if piece.isspace() or _HARMLESS.fullmatch(piece):
            out += piece
            continue
        quoted = len(piece) > 2 and piece[0] == piece[-1] == "`"
        span = _code_span(piece[1:-1] if quoted else piece)
        out += f" {span}" if out.endswith("`") else span
    return out.strip()
