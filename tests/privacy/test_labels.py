"""What rules read in labels and names is there in a redacted copy: numbers, offsets, libraries."""

from __future__ import annotations

import pytest

from stageprof_collectors.privacy.labels import Labels
from stageprof_collectors.privacy.pseudonym import Pseudonyms
from stageprof_collectors.privacy.vocabulary import public, vocabulary
from stageprof_collectors.profiles.nodes import is_library


def names() -> Pseudonyms:
    return Pseudonyms(vocabulary())


def test_a_wait_that_ended_is_known_by_its_thread() -> None:
    """By another it had never ended: a lock was said to be held for ever."""
    said = Labels(names()).of("140000000000000\tsalaries\t/home/m/acme.py:3 Lock", "held up")
    thread, prefix, what = said.split("\t")
    assert thread == "140000000000000"
    assert "salaries" not in prefix
    assert what.endswith(".py:3 Lock")


def test_amounts_of_resources_stay() -> None:
    said = Labels(names()).of("part\tMERGER=1, MEMORY=1e+11\ttcp://db:1", "no worker fits")
    assert [word.partition("=")[2] for word in said.split("\t")[1].split(", ")] == ["1", "1e+11"]
    assert "MERGER" not in said


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("read-block-67108864", True),
        ("read-block-67108864-" + "a1" * 16, True),
        ("x-67108864", False),
    ],
)
def test_where_a_block_of_a_file_begins_stays(text: str, *, kept: bool) -> None:
    """A rule tells the size of the blocks by it."""
    assert ("67108864" in names().text(text)) is kept


def test_a_library_stays_one_and_what_anybody_may_have_has_its_name() -> None:
    """Its frames were taken for the user's own code."""
    folder = "/home/mallory/.venv/lib/python3.11/site-packages"
    private = names().text(f"{folder}/acme/pay.py")
    assert is_library(private)
    assert "acme" not in private
    assert public(f"{folder}/h5py/_hl/files.py") > 0
