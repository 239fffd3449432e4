"""The card: one bar for the whole wall time, the best findings with their code to copy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stageprof
from findings.pages import NAMES, OURS, Page
from stageprof.renderers import notebook
from stageprof_collectors.storage.collector import Live
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.1.stageprof"


@pytest.fixture(scope="module")
def recording() -> stageprof.Recording:
    return stageprof.open(GOLDEN)


def test_a_recording_shows_itself_in_both_forms(recording: stageprof.Recording) -> None:
    shown = recording._repr_mimebundle_(include=None, exclude=None)
    assert shown == {"text/html": recording._repr_html_(), "text/plain": str(recording)}


def test_the_bar_is_the_whole_wall_time(recording: stageprof.Recording) -> None:
    html = recording._repr_html_()
    widths = [float(w) for w in re.findall(r'title="[^"]*" style="width:([\d.]+)%', html)]
    assert sum(widths) == pytest.approx(100, abs=0.1)
    assert len(widths) == int((recording.stages()["wall_s"] > 0).sum())
    assert all(colour in html for s, colour in STAGE_COLOURS.items() if _seen(recording, s))


def _seen(recording: stageprof.Recording, stage: Stage) -> bool:
    return float(recording.stages()["wall_s"].to_dict()[stage]) > 0


def test_it_is_ours_and_nothing_in_it_acts_but_the_button_that_copies(
    recording: stageprof.Recording,
) -> None:
    page = Page(recording._repr_html_())
    assert page.open == []
    assert page.tags <= OURS
    assert page.names <= NAMES


def test_it_takes_ground_and_ink_from_around_it(recording: stageprof.Recording) -> None:
    """So that it is read in any theme; only what is on a colour of ours has an ink of ours."""
    html = recording._repr_html_()
    assert "prefers-color-scheme" not in html
    for style in re.findall(r'style="([^"]*)"', html):
        own = re.search(r"(?:^|;)color:#", style)
        assert own is None or "background:#" in style


def test_it_says_how_to_go_on(recording: stageprof.Recording) -> None:
    assert re.search(r"stageprof app \S*golden-1.1.stageprof", recording._repr_html_())
    with stageprof.profile() as region:
        pass
    assert "rec = %stageprof last" in region.recording._repr_html_()


def test_notes_are_in_both_forms_and_harmless(recording: stageprof.Recording) -> None:
    shown = notebook.bundle(recording.summary, ("<b>3 runs</b>",))
    assert "&lt;b&gt;3 runs" in shown["text/html"]
    assert shown["text/plain"].endswith("\n<b>3 runs</b>")


def test_the_live_line_has_stage_and_tasks() -> None:
    live = Live(counts={"scheduler": (40, 13, 12)})
    assert (
        notebook.live(live, 3.25)["text/plain"] == "stageprof execution · 12 of 40 tasks · 3.25 s"
    )
    assert "width:30.0%" in notebook.live(live, 3.25)["text/html"]
    assert notebook.live(Live(), 0.5)["text/plain"] == "stageprof outside · 500 ms"


def test_nothing_is_shown_line_by_line_where_rich_finds_a_notebook(
    recording: stageprof.Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *_: pytest.fail("rich displays"))
    assert "Where the time went" in str(recording)
