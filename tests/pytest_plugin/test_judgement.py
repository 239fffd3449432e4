"""Limits against what several recordings showed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faces.conftest import HOSTILE
from stageprof.testing.judgement import Found, TooLong, exceeded
from stageprof.testing.limits import Limits, limits
from stageprof.testing.message import Verdict, text
from stageprof.testing.recorder import folder_name
from stageprof.testing.seen import Seen, Spot
from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_runtime.stage import Stage


def finding(rule: str, line: int = 1, word: str = "large") -> Finding:
    where = Where("/home/u/etl.py", line, word, word)
    fix = Fix(f"scatter {word}")
    return Finding(rule, Severity.SERIOUS, f"{word} costs", None, {}, 1.0, (0.5, 0.7), fix, where)


def run(
    wall_s: float, dump_s: float = 0.0, *findings: Finding, layer: str = "lookup", line: int = 41
) -> Seen:
    spot = Spot(Stage.SERIALIZATION, Row(layer, layer, "/home/u/etl.py", line), "task.dump", dump_s)
    stages = dict.fromkeys(Stage, 0.0) | {
        Stage.SERIALIZATION: dump_s,
        Stage.EXECUTION: wall_s - dump_s,
    }
    return Seen(wall_s, stages, {Stage.SERIALIZATION: spot}, findings)


def late(given: Limits, *runs: Seen) -> TooLong | None:
    found = [each for each in exceeded(given, runs) if isinstance(each, TooLong)]
    assert len(found) <= 1
    return found[0] if found else None


def test_the_median_counts_and_not_the_worst() -> None:
    given = limits({"max_wall": 2})

    assert late(given, run(1), run(2), run(9)) is None
    found = late(given, run(1), run(3), run(9))
    assert found is not None
    assert found.seconds == 3


def test_the_median_of_two_lies_between_them() -> None:
    assert late(limits({"max_wall": 2}), run(1), run(3)) is None
    assert late(limits({"max_wall": 1.9}), run(1), run(3)) is not None


def test_a_stage_is_limited_by_its_share_or_by_its_seconds() -> None:
    runs = run(10, 1), run(20, 4), run(30, 3)

    assert late(limits({"max_stage": {"serialization": "10%"}}), *runs) is None
    found = late(limits({"max_stage": {"serialization": "9.9%"}}), *runs)
    assert found is not None
    assert found.value == pytest.approx(0.1)
    assert late(limits({"max_stage": {"serialization": 3}}), *runs) is None
    assert late(limits({"max_stage": {"serialization": "2.9s"}}), *runs) is not None


def test_where_is_that_of_the_recording_next_to_the_median() -> None:
    runs = run(9, 5, line=1), run(9, 3, line=2), run(9, 4, line=3)
    found = late(limits({"max_stage": {"serialization": 1}}), *runs)

    assert found is not None
    assert found.spot is not None
    assert found.spot.row.line == 3


def test_a_finding_counts_if_more_than_half_of_the_recordings_have_it() -> None:
    given = limits({"no_findings_above": "moderate"})
    often, seldom = finding("embedded-object"), finding("large-graph")
    runs = run(1, 0, often), run(1, 0, often, seldom), run(1)

    [found] = exceeded(given, runs)

    assert isinstance(found, Found)
    assert (found.finding.rule, found.times) == ("embedded-object", 2)
    assert exceeded(given, runs[1:]) == []


def test_nothing_recorded_exceeds_nothing() -> None:
    assert exceeded(limits({"max_wall": 0}), ()) == []


def test_the_message_names_everything() -> None:
    given = limits({"max_stage": {"serialization": "10%"}, "no_findings_above": "moderate"})
    runs = [run(2, 1, finding("embedded-object"))]

    said = text([Verdict("", exceeded(given, runs), [2.0], "/r/a b.stageprof")])

    first, *rest = said.splitlines()
    assert first.startswith("stageprof: serialization took 50 % of 2.00 s wall time, the limit is")
    assert first.endswith(
        " 10 %: 1.00 s in serialization task.dump of layer lookup, made at etl.py:41"
    )
    assert rest == [
        "stageprof: serious finding embedded-object at etl.py:1: large costs",
        "  saves 500-700 ms: scatter large",
        "  judged by one recording of 2.00 s",
        "  stageprof show --findings '/r/a b.stageprof'",
    ]


def test_what_is_just_beyond_a_limit_is_shown_in_enough_digits() -> None:
    given = limits({"max_wall": 2, "max_stage": {"serialization": "10%"}})

    said = text([Verdict("", exceeded(given, [run(2.001, 0.2002)]), [2.001], "")])

    assert "took 2.001 s, the limit is 2 s" in said
    assert "took 10.0049975 % of 2.00 s wall time, the limit is 10 %" in said


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_names_do_nothing_in_a_message(word: str) -> None:
    given = limits({"max_stage": {"serialization": 0}, "no_findings_above": "note"})
    found = exceeded(given, [run(2, 1, finding("a-rule", word=word), layer=word)])

    said = text([Verdict(word, found, [2.0], word)])

    assert all(line.isprintable() for line in said.splitlines())
    assert len(said.splitlines()) == 5
    said.encode()


@pytest.mark.parametrize(
    "label", [*HOSTILE, "..", "/", "", "a/../../b::c", "CON", "x.", "é" * 200, "a\\..\\b"]
)
def test_folders_have_names_that_every_file_system_takes(label: str, tmp_path: Path) -> None:
    name = folder_name(label)

    assert name.isascii()
    assert len(name) <= 80
    assert Path(name).name == name
    assert not name.startswith(".")
    assert not name.endswith(".")
    (tmp_path / name).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_tests_with_similar_names_have_different_folders() -> None:
    assert len({folder_name(label) for label in ("a::t[x/y]", "a::t[x-y]", "A::t[x-y]")}) == 3
