"""docs/commands.md says how commands end and which files they write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stageprof
from stageprof import cli
from stageprof.cli import main
from stageprof.commands import COMMANDS
from stageprof.commands.baseline import VARIABLES
from stageprof.source import VARIABLE

PAGE = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()


def test_the_page_has_every_command() -> None:
    assert [c.name for c in COMMANDS if f"`{c.name}`" not in PAGE] == []


def test_the_page_has_every_status_that_the_command_line_has() -> None:
    said = set(map(int, re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)))
    assert said == {0, 1, cli.BAD_INPUT, cli.DEFECT, cli.INTERRUPTED, cli.PIPE_CLOSED}


def test_the_page_has_every_variable_that_is_read() -> None:
    assert [name for name in (VARIABLE, *VARIABLES) if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize(
    ("args", "file"), [(["-c", "pass"], "command.stageprof"), (["-m", "antigravity_"], "")]
)
def test_a_run_is_written_where_the_page_says(
    args: list[str], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    status = main(["run", "-q", *args])
    assert [path.name for path in tmp_path.iterdir()] == ([file] if file else [])
    assert status == (0 if file else 2)
    assert not file or f"`{file}`" in PAGE


def test_a_run_replaces_a_recording_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ["run", "-q", "-o", "r.stageprof", "-c", "pass"]
    assert [main(run), main(run)] == [0, 0]
    Path("r.stageprof").write_text("mine")
    assert main(run) == 2
    assert Path("r.stageprof").read_text() == "mine"


def test_the_page_on_json_has_every_field_of_the_coverage(recorded: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "json.md"
    said = page.read_text().partition("\n## `coverage`\n")[2]
    names = [*stageprof.open(recorded).coverage(), "gil"]
    assert [name for name in names if f"| `{name}` |" not in said] == []


def test_the_readme_names_every_page() -> None:
    docs = Path(__file__).parents[2] / "docs"
    readme = (docs.parent / "README.md").read_text()
    assert [page.name for page in docs.glob("*.md") if f"(docs/{page.name})" not in readme] == []


def test_links_between_pages_lead_somewhere() -> None:
    root = Path(__file__).parents[2]
    for page in (root / "README.md", root / "CHANGELOG.md", *root.glob("docs/*.md")):
        for name, _, anchor in re.findall(r"\]\(([\w./-]*)(#([\w-]+))?\)", page.read_text()):
            assert (page.parent / name).exists(), (page.name, name)
            text = (page.parent / name).read_text() if anchor and name else page.read_text()
            heads = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
            assert not anchor or anchor in map(_anchor, heads), (page.name, name, anchor)


def _anchor(heading: str) -> str:
    """What GitHub makes of a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")
