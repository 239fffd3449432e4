"""How much docs/reliability.md says is tried is how much there is."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from collectors.test_hostile import BOMBS, BY_NIGHT, GOLDENS, MUTATIONS
from reliability.badfiles import BAD
from reliability.enemy import PAYLOADS
from reliability.test_bad_files import READING
from reliability.test_outputs import PRINTED
from reliability.test_shown import KINDS
from reliability.test_versions import LINES
from stageprof.export import FORMATS

PAGE: Final = (Path(__file__).parents[2] / "docs" / "reliability.md").read_text()
VERSIONS: Final = [path.stem.partition("-")[2] for path in GOLDENS]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("B1", f"{MUTATIONS:,} of each every time, {BY_NIGHT:,} of each at night"),
        ("B2", f"{len(BAD)} bad files"),
        ("B2", f"{len([*chain(*READING.values())])} command lines"),
        ("B3", f"{len(BOMBS)} bombs"),
        ("B4", f"{len(PAYLOADS)} payloads"),
        ("B6", f"{len([*chain(*PRINTED.values())])} command lines, {len(FORMATS)} exports"),
        ("B9", f"{VERSIONS[0]} to {VERSIONS[-1]}; {len(LINES)} command lines"),
        ("N1", f"{len(KINDS) + 1} kinds of loss"),
    ],
)
def test_the_page_says_how_much_is_tried(row: str, said: str) -> None:
    [text] = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
    assert said in text
