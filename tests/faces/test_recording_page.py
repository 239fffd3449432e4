"""docs/recording.md names the columns that the tables have, and what a recording can do."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pandas as pd
import pytest

import stageprof
from stageprof.schema import COLUMNS
from stageprof_collectors.comparison.comparison import Compared
from stageprof_collectors.recording import Recording
from stageprof_collectors.replay.replay import Change
from stageprof_runtime import errors, system
from stageprof_runtime.event import STATUS
from stageprof_runtime.unrunnable import MANY

PAGE = (Path(__file__).parents[2] / "docs" / "recording.md").read_text()
TABLES = tuple({**COLUMNS, "findings_frame": ""}.keys() - {"findings"})


def section(title: str) -> str:
    """What stands below a heading."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def named(text: str) -> set[str]:
    """The words in code of the first cells of a text's first table."""
    rows = re.findall(r"^\|(.*?)\|", text.partition("\n\n| `name`")[0], re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`(\w+)`", row)}


@pytest.mark.parametrize("table", sorted(TABLES))
def test_the_columns_of_a_table_are_those_on_the_page(table: str, recorded: Path) -> None:
    frame: pd.DataFrame = getattr(stageprof.open(recorded), table)()
    index = {frame.index.name} - {None}
    assert named(section(f"`{table}()`")) == {*frame.columns, *index}


def test_the_page_has_every_public_name_of_a_recording() -> None:
    inner = {
        "account", "crowds", "entries", "groups", "handed_over", "incidents", "indexing", "lanes",
        "layered", "looked", "memory", "nodes", "owners", "path_steps", "prefixes", "timeline",
        "walk", "walls", "worker_names",
    }  # fmt: skip
    public = {name for name, _ in inspect.getmembers(stageprof.Recording) if name[0] != "_"}
    wanted = public - inner - {"of", "open"} | {"path"}
    assert {name for name in wanted if f"`{name}" not in PAGE} == set()
    assert inner <= {name for name, _ in inspect.getmembers(Recording)}


def test_the_page_has_every_attribute_of_a_comparison() -> None:
    said = section("Comparisons")
    names = {field.name for field in fields(Compared)} - {"options"}
    names |= {"regressions", "improvements", "wall"}
    assert {name for name in names if f"`{name}`" not in said} == set()


def test_the_page_has_every_error_and_how_a_run_may_have_ended() -> None:
    classes = inspect.getmembers(errors, inspect.isclass)
    kinds = [name for name, each in classes if issubclass(each, errors.StageprofError)]
    assert [name for name in kinds if name not in section("Errors")] == []
    assert [word for word in (*STATUS, "running") if f"`{word}`" not in section("`tasks()`")] == []


def sampled() -> set[str]:
    """The names of all samples but facts of workers, as the code that takes them has them."""
    name = r"\"([a-z]+\.[a-z_]+)\""
    sources = [path.read_text() for path in Path(system.__file__).parent.rglob("*.py")]
    given = {each for text in sources for each in re.findall(rf"SAMPLE, [^\"\n]*{name}", text)}
    facts = inspect.getsource(system.memory_limits)
    return given | {MANY, *re.findall(name, inspect.getsource(system).replace(facts, ""))}


def test_samples_have_names_that_are_on_the_page(recorded: Path) -> None:
    names = sampled()
    assert set(stageprof.open(recorded).samples()["name"]) <= names
    assert {name for name in names if f"`{name}`" not in section("`samples()`")} == set()


def test_what_the_page_asks_a_replay_can_be_asked(recorded: Path) -> None:
    rec = stageprof.open(recorded)
    code = re.search(r"```python\n(from stageprof_collectors.*?)```", PAGE, re.DOTALL)
    assert code is not None
    exec(code[1], {"rec": rec})  # the page is ours
    low, high = rec.replay.saving(Change(compute=0.5))
    assert 0 <= low <= high <= rec.wall
