"""The summary: what it says, and that it fits where it is shown."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

import stageprof
from stageprof.renderers import terminal
from stageprof_collectors.account.first_task import FirstTask
from stageprof_collectors.findings.quantity import count, seconds, share
from stageprof_collectors.summary import StepLine
from stageprof_runtime.stage import Stage
from stageprof_ui.palette import STAGE_COLOURS


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 s"),
        (0.00001, "<0.1 ms"),
        (0.0003, "0.3 ms"),
        (0.153, "153 ms"),
        (0.9999, "1.00 s"),
        (2.314, "2.31 s"),
        (9.997, "10.0 s"),
        (23.14, "23.1 s"),
        (59.96, "1 min 00 s"),
        (192, "3 min 12 s"),
        (3840, "1 h 04 min"),
        (float("nan"), "?"),
    ],
)
def test_seconds_have_sensible_digits(value: float, text: str) -> None:
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 %"), (0.0001, "<1 %"), (0.006, "1 %"), (0.364, "36 %"), (1, "100 %")]
)
def test_shares_are_whole_percents(value: float, text: str) -> None:
    assert share(value) == text


def test_counts_agree_with_their_noun() -> None:
    assert [count(1, "task"), count(1204, "task")] == ["1 task", "1,204 tasks"]


def test_every_stage_has_a_colour_of_its_own() -> None:
    assert set(STAGE_COLOURS) == set(Stage)
    assert len(set(STAGE_COLOURS.values())) == len(Stage)


def test_printed_recording_is_its_summary(recorded: Path) -> None:
    text = str(stageprof.open(recorded))

    assert text.startswith("stageprof  Block at conftest.py:")
    assert "3 tasks in 1 computation" in text
    lines = text.splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("Where the time went")) + 1
    assert [line.split()[0] for line in lines[begin : begin + 8]] == [str(s) for s in Stage]
    assert f"stageprof app {recorded}" in text


def test_summary_of_a_live_recording_has_no_file() -> None:
    with stageprof.profile() as region:
        pass
    assert "stageprof show" not in str(region.recording)


def test_wall_time_of_the_stages_adds_up(recorded: Path) -> None:
    summary = stageprof.open(recorded).summary
    assert sum(line.wall_s for line in summary.stages) == pytest.approx(summary.wall_s)


@pytest.mark.parametrize("fixture", ["recorded", "hostile"])
def test_summary_fits_80_columns_and_30_lines(
    fixture: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    path: Path = request.getfixturevalue(fixture)
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(terminal, "BEGAN", str(Path.cwd()))
    lines = str(stageprof.open(path)).splitlines()
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= 80


def costing(recorded: Path, changes: int) -> list[str]:
    """The steps that the summary of a run with four steps of note and so many findings names."""
    summary = stageprof.open(recorded).summary
    steps = tuple(
        StepLine(Stage.EXECUTION, f"step{i}", 1.0 / (i + 1), 0.1, f"worker {i}") for i in range(4)
    )
    finding = replace(summary.findings[-1], severity=stageprof.Severity.SERIOUS)
    full = replace(summary, steps=steps, layers=summary.layers * 3, findings=(finding,) * changes)
    lines = terminal.text(full).splitlines()
    assert len(lines) <= 30
    return [line for line in lines if "execution step" in line]


def test_summary_names_the_three_costliest_steps_and_where_they_ran(recorded: Path) -> None:
    named = costing(recorded, 0)
    assert [line.split()[-3:] for line in named] == [
        [f"step{i}", "worker", str(i)] for i in range(3)
    ]


def test_where_there_is_no_room_it_names_fewer_steps(recorded: Path) -> None:
    """Its 30 lines are what a small terminal has."""
    assert 1 <= len(costing(recorded, 3)) < 3


@pytest.mark.parametrize("forced", ["FORCE_COLOR", "TTY_COMPATIBLE", ""])
def test_summary_has_no_colours_when_piped(
    forced: str, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the width of a terminal, whatever is set for other programs."""
    monkeypatch.setenv("COLUMNS", "40")
    if forced:
        monkeypatch.setenv(forced, "1")
    out = io.StringIO()
    terminal.show(stageprof.open(recorded).summary, out)
    assert "\x1b" not in out.getvalue()
    assert max(map(cell_len, out.getvalue().splitlines())) > 40


def test_summary_is_plain_ascii_where_the_terminal_knows_no_more(recorded: Path) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    terminal.show(stageprof.open(recorded).summary, out)
    out.flush()
    assert b"#" in raw.getvalue()


def test_cut_recording_says_what_is_missing(recorded: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.stageprof"
    cut.write_bytes(recorded.read_bytes()[:-1])
    recording = stageprof.open(cut)

    for text in (str(recording), recording._repr_html_(), recording._repr_markdown_()):
        assert "recording incomplete: " in text
        assert " events up to " in text
    assert "incomplete" in repr(recording)


def test_recording_shows_itself_after_profile_as_after_open(recorded: Path) -> None:
    with stageprof.profile() as region:
        pass
    assert type(region.recording) is type(stageprof.open(recorded)) is stageprof.Recording


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (("3 of a full queue", "end of worker 1"), "3 of a full queue; end of worker 1"),
        (
            tuple(f"not seen: tcp://10.0.0.{i}:40000" for i in range(40)),
            (
                "not seen: tcp://10.0.0.0:40000; not seen: tcp://10.0.0.1:40000; "
                "and 38 more (--json has all)"
            ),
        ),
        (("ab " * 200, "y" * 60, "z"), f"{'ab ' * 26}a…; and 2 more (--json has all)"),
    ],
)
def test_what_is_missing_and_not_said_is_counted(
    recorded: Path, missing: tuple[str, ...], said: str
) -> None:
    summary = replace(stageprof.open(recorded).summary, missing=missing)
    shown = terminal.text(summary).partition("Missing")[2].partition("Next")[0]
    assert " ".join(shown.split()) == said


def test_of_a_long_file_name_the_line_is_there(recorded: Path) -> None:
    summary = stageprof.open(recorded).summary
    layer = replace(summary.layers[0], line="a_script_with_a_long_name.py:4711")
    text = terminal.text(replace(summary, layers=(layer,)))
    assert "…a_long_name.py:4711" in text


def first_task(took: float, *split: tuple[Stage, float], line: str = "etl.py:65") -> FirstTask:
    return FirstTask(took, line, 1, split)


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (
            first_task(0.1, (Stage.OPTIMIZATION, 0.06), (Stage.SCHEDULING, 0.04)),
            "100 ms from etl.py:65: optimization 60 ms, scheduling 40 ms",
        ),
        (
            first_task(0.1, (Stage.OPTIMIZATION, 0.06), (Stage.SCHEDULING, 0.01), line=""),
            "100 ms: optimization 60 ms, scheduling 10 ms, other 30 ms",
        ),
        (
            first_task(
                0.021,
                *((stage, 0.0035) for stage in (Stage.SERIALIZATION, *tuple(Stage)[:3])),
                (Stage.EXECUTION, 0.007),
            ),
            "21 ms from etl.py:65: serialization 3.5 ms, other 18 ms",
        ),
        (
            first_task(192, (Stage.COMMUNICATION, 150), line="a_script_with_a_long_name.py:4711"),
            "3 min 12 s: communication 2 min 30 s, other 42.0 s",
        ),
    ],
)
def test_what_of_the_time_to_the_first_task_no_stage_is_named_for_is_said(
    recorded: Path, first: FirstTask, said: str
) -> None:
    summary = replace(stageprof.open(recorded).summary, first=first)
    line = next(x for x in terminal.text(summary).splitlines() if x.startswith("First task"))
    assert line == f"First task  {said}"
    assert cell_len(line) <= 80


def test_a_problem_leaves_a_blank_line_where_there_is_room(recorded: Path) -> None:
    summary = replace(stageprof.open(recorded).summary, problems=("cluster lost",))
    lines = terminal.text(summary).splitlines()
    assert lines[next(i for i, x in enumerate(lines) if x.startswith("First task")) - 1] == ""


def test_a_problem_is_said_as_far_as_what_was_meant(recorded: Path) -> None:
    seen = "settings are not used: no limit of embedded-object 'min_share': did you mean share?"
    problems = (f"{seen} (in /home/somebody/projects/etl/pyproject.toml)", "another")
    text = terminal.text(replace(stageprof.open(recorded).summary, problems=problems))
    said = text.partition("Problem")[2].partition("Next")[0]
    assert seen in " ".join(said.split())
    assert "1 of 2; --json has all" in " ".join(said.split())


def test_longest_summary_still_fits(recorded: Path) -> None:
    summary = stageprof.open(recorded).summary
    worst = replace(
        summary,
        coverage="very much was seen and much was lost " * 9,
        problems=("cluster lost: because " * 20, "another"),
        incomplete="recording incomplete: " * 9,
        file="r.stageprof",
    )
    lines = terminal.text(worst).splitlines()
    assert len(lines) <= 30
    assert any("1 of 2; --json has all" in line for line in lines)
