"""The tables of limits in docs/findings.md, made of the rules themselves.

Run ``python docs/limits.py`` after a limit was changed; a test says where the page is behind.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from stageprof_collectors.findings.catalogue import known
from stageprof_collectors.findings.rule import Limit, Rule

PAGE: Final = Path(__file__).with_name("findings.md")
BEGIN: Final = "<!-- limits: made by docs/limits.py -->"
END: Final = "<!-- end of limits -->"
_BLOCK: Final = re.compile(rf"\n{BEGIN}\n.*?\n{END}\n", re.DOTALL)
_HEAD: Final = ("| limit | default | of what, and why so much |", "|---|---|---|")
#: From here on a number is written in millions, as `128e6`.
_MILLION: Final = 1_000_000


def main() -> None:
    """Write the page anew."""
    before = PAGE.read_text(encoding="utf-8")
    after = page(before, known().rules.values())
    PAGE.write_text(after, encoding="utf-8")
    sys.stdout.write("written anew\n" if after != before else "as it was\n")


def page(text: str, rules: Iterable[Rule]) -> str:
    """The page with the limits of each rule at the end of its section."""
    blocks = {rule.id: _block(rule) for rule in rules if rule.limits}
    sections = re.split(r"^(?=## )", _BLOCK.sub("", text), flags=re.MULTILINE)
    titles = [section.partition("\n")[0].removeprefix("## ") for section in sections]
    ended = [
        section.rstrip("\n") + "\n" + blocks.get(title, "")
        for title, section in zip(titles, sections, strict=True)
    ]
    return "\n".join(ended)


def _block(rule: Rule) -> str:
    rows = [_row(name, limit) for name, limit in rule.limits.items()]
    return "\n".join(("", BEGIN, "", *_HEAD, *rows, "", END, ""))


def _row(name: str, limit: Limit) -> str:
    return f"| `{name}` | {_number(limit.default)} | {limit.reason} |"


def _number(value: float) -> str:
    """As it is written in settings."""
    return f"{value / _MILLION:g}e6" if value >= _MILLION else f"{value:g}"


if __name__ == "__main__":
    main()
