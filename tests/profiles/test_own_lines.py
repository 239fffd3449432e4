"""Which lines of the user's own the summary names where most of the time is outside Dask."""

from __future__ import annotations

import pytest

from profiles.stacks_made import HOSTILE, Seen
from stageprof.renderers.terminal import text
from stageprof_collectors.profiles.lines import own_lines
from stageprof_collectors.profiles.nodes import is_library
from stageprof_collectors.summary import OWN, summarize
from stageprof_runtime.stage import Stage
from stageprof_ui.columns.overview import MEANINGS, stages

MAIN, LOOP = "main /u/etl.py:3", "gather /u/etl.py:9"
CONCAT = "concat /env/lib/python3.12/site-packages/pandas/core/reshape/concat.py:150"


def seen(*looks: tuple[list[str], float, int]) -> Seen:
    made = Seen()
    for stack, seconds, many in looks:
        made.look(stack, seconds, step="outside", looks=many)
    return made


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/home/u/stageprof_trial/etl.py", False),
        ("/home/u/stageprof_runtime.py", False),
        ("/home/u/lib/python/etl.py", False),
        ("/home/u/my-site-packages/etl.py", False),
        ("/repo/runtime/stageprof_runtime/tail.py", True),
        ("C:\\repo\\ui\\stageprof_ui\\app.py", True),
        ("/repo/stageprof_pytest.py", True),
        ("/usr/lib64/python3.12/threading.py", True),
        ("/usr/lib/python3/dist-packages/yaml/__init__.py", True),
        ("/opt/lib/python3.13t/queue.py", True),
        ("C:\\Programs\\Python\\Python311\\Lib\\queue.py", True),
        ("C:\\conda\\envs\\etl\\Lib\\queue.py", True),
        ("<frozen importlib._bootstrap>", True),
    ],
)
def test_a_library_is_told_by_whole_names_of_folders(file: str, *, library: bool) -> None:
    assert is_library(file) is library


def test_a_line_has_what_it_called_of_libraries_and_not_of_other_lines() -> None:
    made = seen(([MAIN, LOOP, CONCAT], 3, 30), ([MAIN, LOOP], 1, 10), ([MAIN], 2, 20))
    lines = own_lines(made.recording())
    assert [(line.file, line.line, line.seconds) for line in lines] == [
        ("/u/etl.py", 9, 4.0),
        ("/u/etl.py", 3, 2.0),
    ]


def test_what_was_seen_seldom_or_at_a_stage_is_no_line_of_its_own() -> None:
    made = seen(([MAIN], 5, 9), ([CONCAT], 5, 50))
    made.look([MAIN, LOOP], 5, step="build", looks=50)
    assert own_lines(made.recording()) == []


def test_the_summary_names_it_if_it_is_a_good_part_of_the_run() -> None:
    made = seen(([MAIN, LOOP, CONCAT], 3, 30))
    summary = summarize(made.recording())
    (step,) = (step for step in summary.steps if step.step == OWN)
    assert (step.wall_s, round(step.share, 3), step.where) == (3.0, 0.3, "etl.py:9")
    assert "3.00 s  30 %  outside your code             etl.py:9" in text(summary)


def test_the_first_page_says_so_beside_the_account() -> None:
    page = stages(summarize(seen(([MAIN, LOOP, CONCAT], 3, 30)).recording()))
    meant = {line["name"]: line["meaning"] for line in page["stages"]}
    assert meant["outside"] == f"{MEANINGS[Stage.OUTSIDE]}: 3.00 s at etl.py:9"


def test_a_small_part_is_not_named() -> None:
    made = seen(([MAIN], 0.4, 40))
    assert summarize(made.recording()).steps == ()


def test_a_hostile_name_is_shown_as_text() -> None:
    made = seen(*(([f"f {name}:3"], 1.0, 20) for name in HOSTILE))
    shown = text(summarize(made.recording()))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
