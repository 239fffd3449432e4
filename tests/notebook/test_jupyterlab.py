"""The card in a real JupyterLab, in its light and in its dark theme."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

import clusters
import stageprof
from benchmarks.generate import generate

if find_spec("jupyterlab") is None:  # to import it takes four seconds
    pytest.skip("JupyterLab is not installed", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

from nbformat.v4 import new_code_cell, new_notebook, new_output, writes

from stageprof_ui.app import PAGES

#: A cell that says when it may go on, so that what it shows meanwhile can be looked at.
PROGRAM = """\
%%stageprof --name waiting
import dask, pathlib, time

@dask.delayed
def waits(i, total):
    while i == 3 and not pathlib.Path("go on").exists():
        time.sleep(0.02)
    return total + i

print("printed by the cell")
total = 0
for i in range(8):
    total = waits(i, total)
total.compute(scheduler="sync")
"""
NOTEBOOKS = {
    "card": ["%load_ext stageprof", PROGRAM, "rec = %stageprof last\nrec"],
    "app": ["import stageprof\nrec = stageprof.open('made.stageprof')", "rec.app()"],
    "code": ["import stageprof\nstageprof.open('made.stageprof')"],
}
#: Nothing is asked of anybody but this machine.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True,
    },
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}  # fmt: skip
#: What is run before is lost, whatever the indicator of the notebook says.
READY = """() => {
  const kernel = window.jupyterapp?.shell?.currentWidget?.context?.sessionContext?.session?.kernel;
  return kernel?.connectionStatus === "connected" && kernel.status === "idle";
}"""
#: Gives nothing: what the command gives comes only when all cells have run.
RUN_ALL = "() => { jupyterapp.commands.execute('notebook:run-all-cells') }"


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """JupyterLab in a folder; its address."""
    for plugin, values in SETTINGS.items():
        package, _, name = plugin.partition(":")
        file = folder / "settings" / package / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    own = {
        name: str(folder / name.lower())
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    }
    own["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    own["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        "--port=0", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly", "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    with (folder / "lab.log").open("w") as log:
        started = subprocess.Popen(command, cwd=folder, env=os.environ | own, stderr=log)
    clusters.shared.add(started.pid)
    try:
        yield _address(started, folder / "lab.log")
    finally:
        kernels = psutil.Process(started.pid).children(recursive=True)
        started.send_signal(signal.SIGTERM)
        started.wait(20)
        _, alive = psutil.wait_procs(kernels, timeout=20)
        clusters.shared.discard(started.pid)
        assert alive == []


def _address(started: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and started.poll() is None:
        found = re.search(r"http://127\.0\.0\.1:(\d+)/lab", log.read_text())
        if found:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(log.read_text())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notebooks in which nothing was run yet, and a recording."""
    made = tmp_path_factory.mktemp("lab")
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    generate(made / "made.stageprof", tasks=300, workers=2, threads=2, layers=3, seed=1)
    card = {"text/html": stageprof.open(made / "made.stageprof")._repr_html_()}
    sent = new_code_cell("1", outputs=[new_output("display_data", data=card)])
    notebooks = {name: list(map(new_code_cell, texts)) for name, texts in NOTEBOOKS.items()}
    for name, cells in (notebooks | {"sent": [sent]}).items():
        notebook = new_notebook(cells=cells, metadata={"kernelspec": kernel})
        (made / f"{name}.ipynb").write_text(writes(notebook))
    return made


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with lab(folder) as made:
        yield made


@pytest.fixture
def opened(address: str, browser: Any) -> Iterator[Callable[[str], Any]]:
    """Opens a notebook in a page of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 1400})
    context.set_default_timeout(20_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])

    def open_(name: str) -> Any:
        page = context.new_page()
        page.goto(f"{address}/tree/{name}.ipynb?reset")
        page.wait_for_selector(".jp-NotebookPanel .jp-CodeCell")
        page.wait_for_function(READY)
        return page

    yield open_
    context.close()


def rgb(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"[\d.]+", text)[:3]]


def contrast(ink: list[float], ground: list[float]) -> float:
    """By the definition of WCAG 2."""

    def light(colour: list[float]) -> float:
        parts = [c / 255 for c in colour]
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(ink), light(ground)))
    return (high + 0.05) / (low + 0.05)


def change(page: Any, theme: str) -> None:
    command = f"'apputils:change-theme', {{theme: 'JupyterLab {theme}'}}"
    page.evaluate(f"() => {{ jupyterapp.commands.execute({command}) }}")
    page.wait_for_selector(f"[data-jp-theme-name='JupyterLab {theme}']", state="attached")


@pytest.mark.cluster
def test_the_live_line_becomes_the_card_and_both_themes_can_read_it(
    opened: Callable[[str], Any], folder: Path
) -> None:
    page = opened("card")
    running = page.locator(".jp-CodeCell").nth(1)
    page.evaluate(RUN_ALL)

    running.get_by_text(re.compile(r"[0-7] of 8 tasks")).wait_for()
    assert running.locator(".stageprof").count() == 1
    (folder / "go on").touch()
    running.get_by_text("Details").wait_for()

    cards = page.locator(".stageprof")
    page.locator(".jp-CodeCell").nth(2).get_by_text("Details").wait_for()
    assert cards.count() == 2
    assert "tasks ·" not in running.inner_text()
    assert "8 tasks in 1 computation" in running.inner_text()
    assert "printed by the cell" in running.inner_text()
    assert running.locator(".jp-OutputArea-executeResult").inner_text().split()[-1] == "28"

    for theme in ("Light", "Dark"):
        change(page, theme)
        ink, ground = page.evaluate(
            """() => [getComputedStyle(document.querySelector('.stageprof')).color,
                      getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor]"""
        )
        assert contrast(rgb(ink), rgb(ground)) >= 7, theme
        bar = cards.first.locator("[title]").first.bounding_box()
        assert bar is not None
        assert bar["height"] >= 10
        page.screenshot(path=folder / f"{theme}.png")
        assert (folder / f"{theme}.png").stat().st_size > 10_000


@pytest.mark.cluster
def test_the_code_of_a_fix_is_copied_by_a_button_or_by_hand(
    opened: Callable[[str], Any], folder: Path
) -> None:
    page = opened("code")
    page.evaluate(RUN_ALL)
    button = page.get_by_role("button", name="Copy the code").first
    code = page.locator(".stageprof-card pre").first
    button.wait_for()
    said = code.inner_text()
    for copy in (button.click, lambda: button.press("Enter"), lambda: by_hand(page, code)):
        page.evaluate("navigator.clipboard.writeText('')")
        copy()
        assert page.evaluate("navigator.clipboard.readText()").rstrip("\n") == said
    assert button.get_attribute("data-said") == "Copied"
    page.screenshot(path=folder / "code.png")


def by_hand(page: Any, code: Any) -> None:
    page.evaluate("getSelection().removeAllRanges()")
    code.click()
    page.keyboard.press("Control+C")


@pytest.mark.cluster
def test_a_card_that_is_not_trusted_shows_no_button_that_does_nothing(
    opened: Callable[[str], Any], folder: Path
) -> None:
    page = opened("sent")
    code = page.locator(".stageprof-card pre").first
    code.wait_for()
    page.screenshot(path=folder / "sent.png")
    assert page.get_by_role("button", name="Copy the code").count() == 0
    assert page.locator("[onclick], .stageprof ~ style").count() == 0
    assert page.locator(".stageprof-copy:visible").count() == 0
    assert "stageprof-copy" not in page.locator(".stageprof").inner_text()


@pytest.mark.cluster
def test_the_app_stands_in_a_cell_in_colours_of_its_own(
    opened: Callable[[str], Any], folder: Path
) -> None:
    page = opened("app")
    page.evaluate(RUN_ALL)
    bar = page.locator(".sp-stagebar button").first
    bar.wait_for()

    change(page, "Dark")
    page.screenshot(path=folder / "app.png")
    ground, ink, stage, heads = page.evaluate(
        """() => {
             const inside = (root) => [...root.querySelectorAll('*')].flatMap(
               (node) => [node, ...(node.shadowRoot ? inside(node.shadowRoot) : [])]);
             const all = inside(document);
             const tabs = all.find((node) => node.matches('.bk-Tabs, .bk-panel-models-tabs-Tabs'));
             const of = (selector) => getComputedStyle(all.find((n) => n.matches(selector)));
             const heads = all.filter((node) => node.matches('.bk-tab')).map((node) => [
               node.textContent, getComputedStyle(node).color,
               getComputedStyle(node).backgroundColor]);
             return [getComputedStyle(tabs).backgroundColor, of('.sp-legend button').color,
                     of('.sp-stagebar button').backgroundColor, heads];
           }"""
    )
    assert rgb(ground) == [255, 255, 255]
    assert contrast(rgb(ink), rgb(ground)) >= 7
    assert [head[0] for head in heads] == [title for _, title, _ in PAGES]
    for _, colour, behind in heads:
        seen = ground if behind == "rgba(0, 0, 0, 0)" else behind
        assert contrast(rgb(colour), rgb(seen)) >= 7
    assert stage not in ("rgba(0, 0, 0, 0)", "transparent", "rgb(245, 245, 244)")
