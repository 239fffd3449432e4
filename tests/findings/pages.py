"""Markdown and HTML as their readers take them."""

from __future__ import annotations

from html.parser import HTMLParser

from markdown_it import MarkdownIt
from markdown_it.token import Token

from stageprof.renderers.cards import COPY

#: The tags that a notebook's card may have, and their attributes.
OURS = {
    "div", "span", "b", "table", "tr", "td", "pre", "code", "a", "details", "summary",
    "style", "button",
}  # fmt: skip
NAMES = {
    "style", "class", "href", "rel", "title", "open", "type", "data-said", "aria-label", "onclick",
}  # fmt: skip


def parsed(text: str) -> list[Token]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    return [t for token in tokens for t in (token, *(token.children or []))]


class Page(HTMLParser):
    """What a page consists of; nothing in it may act but the button that copies."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.names: set[str] = set()
        self.links: list[str | None] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert {value for name, value in attrs if name.startswith("on")} <= {COPY}
        self.names |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
