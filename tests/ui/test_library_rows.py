"""What the list of recordings says of each: newest first, escaped, and of none more than is so."""

from __future__ import annotations

from pathlib import Path

import pytest

import stageprof
from stageprof_collectors.findings.settings import DEFAULTS
from stageprof_collectors.recording import Recording
from stageprof_runtime.errors import DamagedRecording, NewerRecording, NotARecording
from stageprof_ui import words
from stageprof_ui.columns import library
from stageprof_ui.columns.library import Content, Entry, Head, Line


def test_newest_first_by_the_start_of_the_run() -> None:
    lines = [
        Line(Entry("old", 1, 9 * 10**18), Head("", 100.0, "1970")),
        Line(Entry("new", 1, 1), Head("", 200.0, "1970")),
    ]
    rows = library.facts(Path("x"), lines)["rows"]
    assert [row["name"] for row in rows] == ["new", "old"]


def recorded(
    name: str, wall_s: float | None, when: float, trouble: str = "", verdict: str = ""
) -> Line:
    content = Content(wall_s, 1, None, trouble, verdict) if wall_s is not None else None
    return Line(Entry(name, 1, 1), Head("", when, "2026-11-29"), content)


def names(lines: list[Line], find: str = "", order: str = library.NEWEST) -> list[str]:
    return [row["name"] for row in library.facts(Path("x"), lines, find=find, order=order)["rows"]]


def test_a_recording_is_found_by_words_of_what_is_said_of_it_in_any_order() -> None:
    lines = [
        recorded("etl.stageprof", 1.0, 2.0, trouble="2 tasks failed"),
        recorded("Train.stageprof", 2.0, 1.0, verdict="nothing to change"),
    ]
    assert names(lines, find="FAILED etl") == ["etl.stageprof"]
    assert names(lines, find="train") == ["Train.stageprof"]
    assert names(lines, find="etl train") == []
    facts = library.facts(Path("x"), lines, find="etl")
    assert "1 of 2 recordings, newest first" in words.html("library", **facts)
    facts = library.facts(Path("x"), lines, find="<b>nowhere")
    assert "None of the 2 recordings says that" in words.html("library", **facts)


def test_in_every_order_what_is_not_known_comes_last_and_the_newest_first_of_what_is_the_same() -> (
    None
):
    lines = [
        recorded("b", 1.0, 1.0), recorded("a", None, 2.0), recorded("c", 5.0, 3.0),
        recorded("d", 5.0, 4.0),
    ]  # fmt: skip
    assert names(lines, order="longest wall time first") == ["d", "c", "b", "a"]
    assert names(lines, order="oldest first") == ["b", "a", "c", "d"]
    assert names(lines, order="by name") == ["a", "b", "c", "d"]
    for order in library.ORDERS:
        assert len(names(lines, order=order)) == 4
    assert names(lines, order="no order") == ["d", "c", "a", "b"]


def test_what_was_not_read_yet_says_so() -> None:
    page = words.html("library", **library.facts(Path("x"), [Line(Entry("a", 1, 1))]))
    assert "not read yet" in page
    assert "1 still being read" in page


@pytest.mark.parametrize(("trouble", "praised"), [("", True), ("1 task failed", False)])
def test_a_run_that_failed_is_not_said_to_be_well(trouble: str, *, praised: bool) -> None:
    content = Content(1.0, 3, trouble=trouble, verdict="nothing to change")
    line = Line(Entry("a", 1, 1), Head("", 1.0, "d"), content)
    page = words.html("library", **library.facts(Path("x"), [line]))
    assert ("nothing to change" in page) is praised
    assert trouble in page


def test_an_empty_folder_says_so(tmp_path: Path) -> None:
    page = words.html("library", **library.facts(tmp_path, []))
    assert "There is no recording" in page


def test_hostile_names_are_escaped_and_their_links_lead_nowhere_else() -> None:
    name = 'x"><img src=x>\u202e&recording=\udcff?#/../y.stageprof'
    line = Line(Entry(name, 1, 1), Head("<b>label", 1.0, "d"), Content(1.0, 1, None, "<i>bad"))
    page = words.html("library", **library.facts(Path("<u>"), [line]))
    for bad in ("<img", "<b>label", "<i>bad", "<u>", "\u202e"):
        assert bad not in page
    link = library.facts(Path("x"), [line])["rows"][0]["link"]
    assert link.startswith("/?recording=")
    assert not set(link[len("/?recording=") :]) & set("&?#/\"'<> ")


def test_where_nothing_is_to_be_changed_it_says_what_the_recording_does() -> None:
    """Of one that saw no computation it said that there was nothing to change."""
    content_ = Content(1.0, 0, verdict="No Dask computation was seen here: `x` & none")
    line = Line(Entry("a", 1, 1), Head("", 1.0, "d"), content_)
    page = words.html("library", **library.facts(Path("x"), [line]))
    assert "No Dask computation was seen here: <code>x</code> &amp; none" in page
    assert "othing to change" not in page


def test_what_a_recording_says_is_read_from_its_file(tmp_path: Path) -> None:
    with stageprof.profile(str(tmp_path / "a.stageprof")):
        pass
    read = library.content(tmp_path / "a.stageprof", DEFAULTS)
    assert read.worst is None
    assert read.verdict.startswith("No Dask computation was seen here")


def test_old_recordings_beyond_what_is_listed_are_counted() -> None:
    lines = [Line(Entry(str(i), 1, i)) for i in range(10)]
    facts = library.facts(Path("x"), lines, most=4)
    assert len(facts["rows"]) == 4
    assert facts["left_out"] == 6


def test_content_never_raises(tmp_path: Path) -> None:
    assert library.content(tmp_path / "nothing", DEFAULTS).trouble.startswith("cannot read")
    assert library.head(tmp_path / "nothing") == Head("", 0.0, "")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (NotARecording("it is empty"), "it is empty"),
        (NewerRecording("it has format version 9.3"), "it has format version 9.3"),
        (PermissionError(13, "Permission denied"), "[Errno 13] Permission denied"),
        (MemoryError(), "damaged: it cannot be made sense of (MemoryError: )"),
        (KeyError("x"), "damaged: it cannot be made sense of (KeyError: 'x')"),
        (DamagedRecording("nothing can be read"), "damaged: nothing can be read"),
    ],
)
def test_only_what_is_damaged_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(Recording, "open", fails)
    assert library.content(tmp_path / "x", DEFAULTS).trouble == said
