"""Everything that is printed or written of a recording whose every text is an enemy's."""

from __future__ import annotations

import csv
import json
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pytest

import stageprof
from faces.test_hostile_text import active
from findings.conftest import Only, only
from findings.pages import NAMES, OURS, Page, parsed
from pytest_plugin.running import run_tests
from reliability.enemy import TEXTS, rules, written
from reliability.test_bad_files import leaves
from stageprof.cli import main
from stageprof.cli import stageprof as commands
from stageprof.export import FORMATS
from stageprof_collectors.findings.finding import DOCUMENTATION

__all__ = ["only"]  # a fixture

#: What each command prints of recordings, and in which form; FILE is the recording, WELL one of a
#: run that did not fail: others are not compared.
PRINTED: Final = {
    "show": ("show FILE", "show --findings FILE", "show --json FILE", "show --markdown FILE"),
    "inspect": ("inspect FILE",),
    "compare": (
        "compare WELL WELL", "compare WELL WELL --json", "compare WELL WELL --markdown",
        "compare WELL WELL --junit",
    ),
    "baseline save": ("baseline save WELL FILE --dir DIR --branch BRANCH",),
    "baseline list": (
        "baseline list DIR", "baseline list DIR --json", "baseline list DIR --like FILE",
        "baseline list DIR --paths",
    ),
    "baseline prune": ("baseline prune DIR --keep 0 --dry-run",),
    "check": (
        "check --like FILE -c CODE", "check --like FILE --json -c CODE",
        "check --like FILE --markdown -c CODE",
    ),
}  # fmt: skip
#: These write files, which are looked at below and in test_hostile_pages.
WRITTEN: Final = {"report", "export", "flame", "snakeviz"}
#: These show what runs, which is recorded by others in the same way.
RUNNING: Final = {"run", "demo", "attach", "app"}
#: A program whose keys are an enemy's.
CODE: Final = (
    "from dask.delayed import delayed\nfrom dask.base import compute\n"
    f"compute(*[delayed(abs)(1, dask_key_name=t) for t in {TEXTS!r}], scheduler='sync')"
)


@pytest.fixture(scope="module")
def enemy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording."""
    return written(tmp_path_factory.mktemp("enemy") / "enemy.stageprof")


@pytest.fixture(autouse=True)
def hostile_findings(only: Only) -> None:
    """What the rules find is an enemy's as well."""
    only(*rules())


@pytest.fixture(scope="module")
def well(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of a run that did not fail."""
    return written(tmp_path_factory.mktemp("well") / "enemy.stageprof", failed=False)


Say = Callable[[str], str]


@pytest.fixture
def say(enemy: Path, well: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a line of words; what it printed."""
    folder = tmp_path / "kept"
    assert main(["baseline", "save", str(well), "--dir", str(folder), "--branch", TEXTS[0]]) == 0
    given = {
        "FILE": str(enemy),
        "WELL": str(well),
        "DIR": str(folder),
        "CODE": CODE,
        "BRANCH": TEXTS[11],
    }

    def run(line: str) -> str:
        capsys.readouterr()
        assert main([given.get(word, word) for word in line.split()]) in (0, 1)
        out, err = capsys.readouterr()
        assert active(err) - {"\r"} == set()
        return out

    return run


def test_no_command_is_forgotten() -> None:
    """B6: every subcommand prints, writes or runs."""
    assert set(leaves(commands)) == PRINTED.keys() | WRITTEN | RUNNING


@pytest.mark.parametrize("name", PRINTED)
def test_no_command_prints_what_acts(say: Say, name: str) -> None:
    """B6, T16, T17: no control character, nothing that reorders or hides; in each form text."""
    for line in PRINTED[name]:
        out = say(line)
        assert out, line
        assert active(out) == set(), line
        if "--json" in line:
            strict(out)
            assert out.isascii(), line
        elif "--markdown" in line:
            is_text(out)
        elif "--junit" in line:
            assert active("".join(ET.fromstring(out).itertext())) == set()


def strict(text: str) -> Any:
    """The JSON, without what only Python takes for it."""

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def is_text(markdown: str) -> None:
    """Nothing in it is HTML, a picture, a mention, or a link but to our own pages."""
    tokens = parsed(markdown)
    assert not {t.type for t in tokens} & {"html_inline", "html_block", "image"}
    links = [str(t.attrs["href"]) for t in tokens if t.type == "link_open"]
    assert [link for link in links if not link.startswith(DOCUMENTATION)] == []
    said = " ".join(t.content for t in tokens if t.type == "text")
    for bad in ("@", "://", "www."):
        assert bad not in said, bad


def test_what_is_not_compared_is_named_in_text(
    enemy: Path, well: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exception that left the program is called as an enemy wishes."""
    assert main(["compare", str(well), "--", str(enemy)]) == 2
    assert main(["compare", str(well), str(enemy), "--", str(well)]) in (0, 1)
    assert active("".join(capsys.readouterr())) - {"\r"} == set()


def test_a_notebook_is_shown_text(enemy: Path, well: Path) -> None:
    """B6: the card of a recording and that of a comparison."""
    recording = stageprof.open(enemy)
    found = stageprof.compare(well, [well, recording])
    assert found._repr_markdown_()
    links: list[str | None] = []
    for html in (recording._repr_html_(), found._repr_html_()):
        page = Page(html)
        assert page.open == []
        assert page.tags <= OURS | {"th", "thead", "tbody", "caption", "p", "h2", "h3", "ul", "li"}
        assert page.names <= NAMES | {"scope", "colspan"}
        assert active(html) == set()
        links += page.links
    assert links
    assert [link for link in links if not str(link).startswith("https://")] == []


@pytest.mark.parametrize("form", FORMATS)
def test_no_export_holds_what_acts(enemy: Path, tmp_path: Path, form: str) -> None:
    """B6: files for other tools hold no control character, and CSV no formula."""
    target = tmp_path / "out"
    assert main(["export", str(enemy), "--to", form, "-o", str(target)]) == 0
    for file in sorted(target.rglob("*")) if target.is_dir() else [target]:
        if file.suffix == ".parquet" or form in ("parquet", "prof"):
            continue  # columns as they are: for programs, who may want to know what there was
        text = file.read_text("utf-8")
        assert active(text) == set()
        if form in ("perfetto", "speedscope"):
            strict(text)
        if form == "csv":
            cells = [cell for row in csv.reader(text.splitlines()) for cell in row]
            assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-c"))]


def test_tables_of_a_hostile_recording_hold_it_as_it_is(enemy: Path) -> None:
    """T18: frames keep what the keys were, in texts that UTF-8 can carry."""
    tasks = stageprof.open(enemy).tasks()
    assert isinstance(tasks, pd.DataFrame)
    for text in tasks["key"]:
        text.encode()
    assert any("<img src=x" in text for text in tasks["key"])


def test_nothing_is_warned_of(enemy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """T24: not-a-number and infinity among samples leave no warning of numpy's on a terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["show", str(enemy)]) == 0
    assert capsys.readouterr().err == ""


def test_pytest_shows_the_names_of_tests_as_text(tmp_path: Path) -> None:
    """B6: the table at the end of a pytest run, and the message of a limit that was exceeded."""
    source = """
import pytest
import stageprof
from dask.base import compute
from dask.delayed import delayed

@pytest.mark.stageprof(max_wall=0)
@pytest.mark.parametrize("text", TEXTS, ids=[ascii(t) for t in TEXTS])
def test_it(text, stageprof_recorder):
    with stageprof_recorder(text):
        compute(delayed(abs)(1, dask_key_name=text), scheduler="sync")
"""
    done = run_tests(tmp_path, f"TEXTS = {TEXTS[:17:4]!r}\n{source}", "--no-header")
    table = done.table
    assert "<img" in table
    assert active(table) == set()
