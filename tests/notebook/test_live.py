"""The live line of a notebook: one display, which the card takes; nothing else stays."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("IPython")

from IPython.core.displaypub import CapturingDisplayPublisher

import clusters
import stageprof
from stageprof.magic import live as module
from stageprof.magic.live import Notebook, Quiet, Terminal, showing
from stageprof_collectors.storage.collector import Live

GOLDEN = Path(__file__).parents[1] / "data" / "golden-1.1.stageprof"


class Display:
    """Stands for that of a kernel; may be gone."""

    def __init__(self) -> None:
        self.shown: list[dict[str, Any]] = []
        self.error: Exception | None = None

    def display(self, bundle: dict[str, Any], **how: Any) -> Display:
        assert how.pop("raw")
        self.shown.append(bundle)
        return self

    def update(self, bundle: dict[str, Any], **how: Any) -> None:
        if self.error is not None:
            raise self.error
        self.display(bundle, **how)


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Iterator[Display]:
    made = Display()
    monkeypatch.setattr(module, "display", made.display)
    monkeypatch.setattr(module, "PERIOD_S", 0.005)
    yield made
    assert not [t for t in threading.enumerate() if t.name == "stageprof-live"]


def look() -> Live:
    return Live(counts={"scheduler": (8, 4, 3)})


def test_the_line_is_there_at_once_and_goes_on(display: Display) -> None:
    with Notebook(look):
        assert display.shown[0]["text/plain"].startswith("stageprof outside")
        clusters.soon(lambda: len(display.shown) > 2)
    assert "3 of 8 tasks" in display.shown[1]["text/plain"]


def test_the_card_takes_its_place(display: Display) -> None:
    with Notebook(look) as shown:
        clusters.soon(lambda: len(display.shown) > 1)
    shown.card(stageprof.open(GOLDEN).summary, ())
    shown.gone()
    assert "Where the time went" in display.shown[-1]["text/plain"]


def test_without_a_card_nothing_of_it_stays(display: Display) -> None:
    with Notebook(look) as shown:
        pass
    shown.gone()
    assert display.shown[-1] == {"text/html": "", "text/plain": ""}


def test_a_notebook_that_is_gone_is_no_reason_to_fail(display: Display) -> None:
    with Notebook(look) as shown:
        display.error = OSError("closed")
        clusters.soon(lambda: not shown._thread.is_alive())


def test_where_output_is_captured_there_is_no_line(display: Display) -> None:
    with Notebook(None) as shown:
        pass
    shown.gone()
    assert display.shown == []
    shown.card(stageprof.open(GOLDEN).summary, ())
    assert len(display.shown) == 1


def test_each_shell_gets_what_suits_it() -> None:
    plain: Any = SimpleNamespace()
    kernel: Any = SimpleNamespace(kernel=object(), display_pub=None)
    held: Any = SimpleNamespace(kernel=object(), display_pub=CapturingDisplayPublisher())

    assert isinstance(showing(plain, look, quiet=False), Terminal)
    assert isinstance(showing(plain, look, quiet=True), Quiet)
    for shell, line in ((kernel, look), (held, None)):
        made = showing(shell, look, quiet=False)
        assert isinstance(made, Notebook)
        assert made._look is line
