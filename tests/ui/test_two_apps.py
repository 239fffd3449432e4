"""Several recordings on one page, as in a notebook: each has colours of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from serving import running
from stageprof.app import served
from stageprof_collectors.recording import Recording
from ui.conftest import Watched

_APPS = "Object.values(stageprof.apps)"
#: Another app on the page, with a legend of its own.
_ANOTHER = f"""() => {{
  const one = {_APPS}[0], {{ palettes, ...tables }} = one.tables;
  stageprof.app("another", () => ({{ ...tables, palettes: {{}} }}));
  document.body.insertAdjacentHTML("beforeend", `
    <p data-sp-legend="layer" data-sp-app="another"></p>
    <p data-sp-legend="gil" data-sp-app="another" hidden></p>`);
}}"""


@pytest.mark.parametrize(("which", "shown"), [(0, ["gil", "layer"]), (1, ["layer", "gil"])])
def test_colours_that_are_chosen_in_one_app_switch_the_legend_of_no_other(
    watched: Watched, generated: Callable[[int], Path], which: int, shown: list[str]
) -> None:
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(f"{app.url}#timeline")
        page.wait_for_function(f"window.stageprof && {_APPS}.length")
        page.locator("[data-sp-legend=layer]").first.wait_for()
        page.evaluate(_ANOTHER)
        page.evaluate(f"{_APPS}[{which}].selection.change({{ mode: 'gil' }})")
        seen = page.locator("[data-sp-legend]:not([hidden])")
        legends = {
            (one.get_attribute("data-sp-app") == "another"): one.get_attribute("data-sp-legend")
            for one in [seen.nth(i) for i in range(seen.count())]
        }
    assert [legends[False], legends[True]] == shown


def test_a_stage_that_is_chosen_in_one_app_is_chosen_in_no_other(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(app.url)
        page.evaluate(_ANOTHER)
        page.locator(".sp-legend [data-sp-stage=execution]").click()
        assert page.evaluate(f"{_APPS}.map((one) => one.selection.stage)") == ["execution", ""]


def test_what_was_chosen_is_chosen_in_a_newer_recording_of_the_same_run(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    """Layers are the same by name and line, not by number."""
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(app.url)
        told = page.evaluate(
            f"""() => {{
              const one = {_APPS}[0], layers = [...one.tables.layers].reverse();
              const newer = new stageprof.Selection({{ ...one.tables, layers }});
              one.selection.change({{ mode: "gil", stage: "execution", layers: new Set([1]) }});
              newer.follow(one.selection);
              const names = [...newer.layers].map((i) => layers[i].name);
              return [newer.mode, newer.stage, names, one.tables.layers[1].name];
            }}"""
        )
    assert told == ["gil", "execution", [told[3]], told[3]]


def test_what_was_looked_for_is_looked_for_in_a_newer_recording(
    watched: Watched, generated: Callable[[int], Path]
) -> None:
    """Tasks have other numbers there, and there may be more of them."""
    with running(served(Recording.open(generated(1_000)))) as app:
        page = watched.open(app.url)
        found = page.evaluate(
            f"""() => {{
              const one = {_APPS}[0], keys = ["new", ...one.tables.keys, one.tables.keys[0]];
              const newer = new stageprof.Selection({{ ...one.tables, keys }});
              one.selection.search(one.tables.keys[0]);
              newer.follow(one.selection);
              const were = [...one.selection.runs], are = [...newer.runs];
              return [newer.text, were.map((i) => i + 1), are, keys[0], keys[1], keys.length - 1];
            }}"""
        )
    text, were, are, _, first, last = found
    assert text == first
    assert are == [*were, last]
