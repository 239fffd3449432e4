"""Other tools can read what is exported: speedscope, flamegraph.pl, pstats, snakeviz."""

from __future__ import annotations

import json
import pstats
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stageprof
from profiles.stacks_made import HOSTILE, Seen
from profiles.test_flame import LOAD, built, hostile
from stageprof.export import FORMATS
from stageprof.export.target import exported
from stageprof_collectors.profiles.flame import Frame
from stageprof_collectors.profiles.folded import collapsed
from stageprof_collectors.profiles.session import NoLooks
from stageprof_collectors.recording import Recording

SCHEMA = Path(__file__).parent.parent / "data" / "speedscope.schema.json"


def write(recording: Recording, form: str, folder: Path) -> Path:
    path = folder / f"out.{form}"
    exported(FORMATS[form], stageprof.Recording.of(recording), path, force=False)
    return path


#: The words for types that speedscope's schema uses.
TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
}


def problems(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> list[str]:
    """What of a value is not as a JSON schema has it, as far as speedscope's schema goes."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        return problems(value, root["definitions"][name], root)
    if "anyOf" in schema:
        each = [problems(value, one, root) for one in schema["anyOf"]]
        return [] if [] in each else each[-1]
    kind = schema.get("type")
    if kind is not None and not isinstance(value, TYPES[kind]):
        return [f"{value!r} is no {kind}"]
    if value not in schema.get("enum", [value]) or value != schema.get("const", value):
        return [f"{value!r} is not allowed"]
    return list(inner_problems(value, schema, root))


def inner_problems(value: Any, schema: dict[str, Any], root: dict[str, Any]) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (f"{name} lacks" for name in schema.get("required", ()) if name not in value)
        known = schema.get("properties", {})
        for name in value.keys() & known.keys():
            yield from problems(value[name], known[name], root)
    elif isinstance(value, list):
        for item in value:
            yield from problems(item, schema["items"], root)


def test_the_check_of_schemas_finds_what_is_wrong() -> None:
    schema = json.loads(SCHEMA.read_text())
    assert problems({"$schema": "x"}, schema, schema)
    assert problems({"shared": {"frames": [{"name": 1}]}}, schema, schema)


@pytest.mark.parametrize("make", [built, lambda: hostile().recording()], ids=["plain", "hostile"])
def test_speedscope_files_are_valid_against_its_published_schema(make: Any, tmp_path: Path) -> None:
    file = json.loads(write(make(), "speedscope", tmp_path).read_text())
    schema = json.loads(SCHEMA.read_text())
    assert problems(file, schema, schema) == []
    for profile in file["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        frames = len(file["shared"]["frames"])
        assert all(0 <= i < frames for stack in profile["samples"] for i in stack)


def test_a_speedscope_file_has_all_together_and_each_stage(tmp_path: Path) -> None:
    file = json.loads(write(built(), "speedscope", tmp_path).read_text())
    named = {p["name"]: sum(p["weights"]) for p in file["profiles"]}
    assert named == {"all stages": 11.0, "construction": 4.0, "execution": 7.0}
    assert {"name": "load", "file": "/u/etl.py", "line": 9} in file["shared"]["frames"]


def test_folded_stacks_have_one_line_each(tmp_path: Path) -> None:
    lines = write(built(), "collapsed", tmp_path).read_text().splitlines()
    assert lines == [
        "construction;main etl.py:3;load etl.py:9;delayed delayed.py:400 3000000",
        "construction;main etl.py:3;save etl.py:20 1000000",
        "execution;main etl.py:3 7000000",
    ]


def test_no_name_ends_a_frame_or_a_line_of_folded_stacks() -> None:
    made = Seen()
    for text in HOSTILE:
        made.look([f"{text} /u/e.py:1", LOAD], 1)
    lines = collapsed(made.recording().flame()).splitlines()
    assert len(lines) == len(HOSTILE)
    for line in lines:
        stack, _, weight = line.rpartition(" ")
        assert weight.isdigit()
        assert len(stack.split(";")) == 2
        assert line.isprintable()


def test_a_prof_file_is_read_by_pstats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(built(), "prof", tmp_path)
    found: Any = pstats.Stats(str(path))
    assert found.total_tt == pytest.approx(11.0)
    found.sort_stats("cumulative").print_stats()
    found.print_callers()
    found.print_callees()
    assert "etl.py:9(load)" in capsys.readouterr().out


@pytest.mark.parametrize("make", [built, lambda: hostile().recording()], ids=["plain", "hostile"])
def test_a_prof_file_is_read_by_what_snakeviz_makes_of_it(make: Any, tmp_path: Path) -> None:
    from snakeviz.stats import json_stats, table_rows

    found = pstats.Stats(str(write(make(), "prof", tmp_path)))
    assert table_rows(found)
    made = json_stats(found)
    assert any(name.endswith("(<profiled region>)") for name in made)


def test_a_prof_file_of_counted_calls_has_them(tmp_path: Path) -> None:
    made = Seen()
    made.call("main", "", 1, 4)
    made.call("load", "main", 3, 3, calls=12)
    found: Any = pstats.Stats(str(write(made.recording(), "prof", tmp_path)))
    assert found.stats["/u/etl.py", 1, "load"][:4] == (12, 12, 3.0, 3.0)
    assert found.total_tt == pytest.approx(4.0)


@pytest.mark.parametrize("form", ["speedscope", "collapsed", "prof"])
def test_a_recording_without_looks_is_not_exported(form: str, tmp_path: Path) -> None:
    with pytest.raises(NoLooks, match="no look at any stack"):
        write(Seen().recording(), form, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_frames_are_as_they_were_recorded() -> None:
    stacks = built().flame("construction").stacks
    assert {stack[1] for stack in stacks} == {
        Frame("load", "/u/etl.py", 9),
        Frame("save", "/u/etl.py", 20),
    }
    assert all(stack[0] == Frame("main", "/u/etl.py", 3) for stack in stacks)
