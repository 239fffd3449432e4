"""The tour in samples/ runs, and in a kernel each profiled cell leaves one card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psutil
import pytest

import clusters

TOUR = Path(__file__).parents[2] / "samples" / "tour.ipynb"
#: What the tour does not need to show.
MORE = [
    "%%capture held\n%%stageprof\ndask.compute(tasks[0])",
    "[list(out.data) for out in held.outputs]",
    "%%stageprof\nimport asyncio\nawait asyncio.sleep(0.01, 5)",
    "%%stageprof\nx = 1\n1 / 0",
    "%stageprof --bad",
]

Cell = Any


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The tour and some more cells, as a kernel ran them."""
    # Imported here, for it takes seconds, and each process that collects tests would pay them.
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat")
    tour = nbformat.read(TOUR, as_version=4)
    more = [nbformat.v4.new_code_cell(text) for text in MORE]
    whole = nbformat.v4.new_notebook(cells=[*tour.cells, *more], metadata=tour.metadata)
    mine = psutil.Process()
    before = {p.pid for p in mine.children()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        nbclient.NotebookClient(
            whole, timeout=60, allow_errors=True, kernel_name="python3"
        ).execute()
    left = [p for p in mine.children() if p.pid not in before and p.pid not in clusters.shared]
    assert left == []
    return whole


@pytest.fixture(scope="module")
def ran(executed: Any) -> dict[str, Cell]:
    """The cells, by their text."""
    return {cell.source: cell for cell in executed.cells if cell.cell_type == "code"}


def cards(cell: Cell) -> list[Any]:
    return [out for out in cell.outputs if out.output_type == "display_data"]


def kinds(cell: Cell) -> list[str]:
    return [out.output_type for out in cell.outputs]


@pytest.mark.cluster
def test_the_tour_runs_and_shows_what_it_says(ran: dict[str, Cell]) -> None:
    slow, fast = (next(c for s, c in ran.items() if f"--name {n}" in s) for n in ("slow", "fast"))
    assert kinds(slow) == kinds(fast) == ["display_data", "execute_result"]
    assert slow.outputs[1].data == fast.outputs[1].data
    (card,) = cards(slow)
    assert "5,000 tasks, most of <code>score</code> at In [3]:2" in card.data["text/html"]
    assert "def score_batch(inputs):" in card.data["text/html"]
    assert "5,000 tasks in 1 computation" in card.data["text/plain"]
    (compared,) = next(c for s, c in ran.items() if s.endswith("%stageprof compare")).outputs
    assert "text/html" in compared.data
    wrong = [c for c in ran.values() if "error" in kinds(c) and c.source not in MORE]
    assert wrong == []


@pytest.mark.cluster
def test_a_kernel_shows_one_card_and_nothing_of_the_line_before_it(ran: dict[str, Cell]) -> None:
    for cell in (c for s, c in ran.items() if s.startswith("%%stageprof")):
        (card,) = cards(cell)
        assert set(card.data) == {"text/html", "text/plain"}
        assert "Where the time went" in card.data["text/plain"]
    assert (
        ran[MORE[1]].outputs[0].data["text/plain"]
        == "[['text/html', 'text/plain'], ['text/plain']]"
    )


@pytest.mark.cluster
def test_a_kernel_awaits_fails_and_refuses_as_it_should(ran: dict[str, Cell]) -> None:
    awaited, failed, refused = (ran[text] for text in MORE[2:])
    assert awaited.outputs[-1].data["text/plain"] == "5"
    error = failed.outputs[-1]
    assert (kinds(failed), error.ename) == (["display_data", "error"], "ZeroDivisionError")
    said = "".join(error.traceback)
    assert "line 3" in said.replace("\x1b[32m", "").replace("\x1b[39m", "")
    assert "words.py" not in said
    assert "run_cell_magic" not in said
    lines = [out.text for out in refused.outputs if out.output_type == "stream"]
    assert lines == ["UsageError: No such option '--bad'; see %stageprof?\n"]


@pytest.mark.cluster
def test_a_page_made_by_nbconvert_has_the_cards_and_no_line(executed: Any) -> None:
    nbconvert = pytest.importorskip("nbconvert")
    html, _ = nbconvert.HTMLExporter().from_notebook_node(executed)
    profiled = [c for c in executed.cells if c.source.startswith("%%stageprof")]
    assert html.count('<div class="stageprof"') == len(profiled)
    assert html.count(">Details</summary>") == len(profiled)


def test_the_tour_is_kept_without_outputs() -> None:
    tour = json.loads(TOUR.read_text(encoding="utf-8"))
    cells = [cell for cell in tour["cells"] if cell["cell_type"] == "code"]
    assert [(c["outputs"], c["execution_count"]) for c in cells] == [([], None)] * len(cells)
