"""What failed in a run is named in the words of every face, from recordings made by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from findings.crews import Crewed
from findings.pages import Page
from replay.handmade import ns
from stageprof.renderers import document, findings, markdown, notebook, terminal
from stageprof_collectors.recording import Recording
from stageprof_collectors.summary import summarize
from stageprof_runtime.event import MARK
from stageprof_ui.columns import library, overview
from stageprof_ui.store import Store

LOST = 2
WORDS = "1 task failed (ValueError, fetch at etl.py:8), 1 run was retried"
ENDED = "the program ended with ValueError"


def failing() -> Recording:
    """A task fails for good, another is run again, and the program ends."""
    made = Crewed(2)
    made.fails(0, 200, "fetch-1", "ValueError")
    made.fails(1, 300, "fetch-2", "OSError")
    made.fails(1, 400, "fetch-2", status=0)
    made.ended("program\tValueError\t", at=999)
    return made.recording(1000)


def said(made: Crewed) -> tuple[str, ...]:
    return made.recording(1000).failures.said


def test_failed_tasks_and_retried_runs_are_told_apart() -> None:
    found = failing().failures
    assert found.said == (WORDS, ENDED)
    assert (found.failed, found.retried) == ([0], [1])
    assert {row: raised.type for row, raised in found.raised.items()} == {
        0: "ValueError",
        1: "OSError",
    }


def test_a_notebook_shows_in_words_what_failed() -> None:
    assert repr(failing().failures) == f"<Failures: {WORDS}; {ENDED}>"
    assert repr(Crewed(1).recording(1000).failures) == "<Failures: none>"


def test_where_nothing_failed_no_face_says_a_word() -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1", status=0)
    made.fails(0, 300, "fetch-2", status=LOST)
    recording = made.recording(1000)
    assert recording.failures.said == ()
    assert json.loads(document.text(recording))["failures"] == {
        "said": [], "tasks_failed": 0, "runs_retried": 0, "raised": [], "ended": None,
    }  # fmt: skip
    assert "failed" not in terminal.text(summarize(recording))
    assert overview.stages(summarize(recording))["failures"] == ""


def test_every_face_says_it_before_what_there_is_to_change() -> None:
    recording = failing()
    summary = replace(summarize(recording), findings=())
    for text in (
        terminal.text(summary),
        findings.text(summary),
        markdown.text(summary).replace("`", ""),
        notebook.html(summary),
    ):
        assert WORDS in text
        assert text.index(ENDED) < text.index("Nothing to change")
    assert overview.stages(summary)["failures"] == f"{WORDS} · {ENDED}"
    assert library._content(recording, summary).trouble.startswith(f"{WORDS}; {ENDED}")


def test_the_json_has_each_exception_and_how_the_program_ended() -> None:
    told = json.loads(document.text(failing()))["failures"]
    assert told["said"] == [WORDS, ENDED]
    assert (told["tasks_failed"], told["runs_retried"]) == (1, 1)
    assert told["raised"] == [
        {"type": name, "prefix": "fetch", "file": "etl.py", "line": 8, "runs": 1}
        for name in ("ValueError", "OSError")
    ]
    assert told["ended"] == {"what": "program", "type": "ValueError", "status": None}


def test_retries_that_helped_are_named_with_what_they_were_for() -> None:
    made = Crewed(1)
    made.fails(0, 200, "work-1", "OSError")
    made.fails(0, 400, "work-1", "OSError")
    made.fails(0, 600, "work-1", status=0)
    assert said(made) == ("2 runs were retried after failures (OSError, work at etl.py:8)",)


def test_a_failure_whose_exception_nobody_told_is_counted_with_its_task() -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1")
    assert said(made) == ("1 task failed (fetch)",)


def test_an_exception_is_that_of_the_run_that_ended_right_before() -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1")  # of this one nothing was told
    made.fails(0, 1900, "fetch-2", "OSError")
    found = made.recording(2000).failures
    assert {row: raised.type for row, raised in found.raised.items()} == {1: "OSError"}
    assert found.said == ("2 tasks failed (OSError, fetch at etl.py:8)",)


def test_many_kinds_of_exceptions_are_the_most_frequent_and_a_number() -> None:
    made = Crewed(1)
    for i, name in enumerate(("AError", "BError", "CError", "BError", "DError", "BError")):
        made.fails(0, 150 * (i + 1), f"load{name}-{i}", name)
    (text,) = said(made)
    assert text.startswith("6 tasks failed (BError, loadBError at etl.py:8; AError, ")
    assert text.endswith("; 2 more)")


def test_a_task_that_is_given_up_with_its_workers_has_the_schedulers_word() -> None:
    made = Crewed(1)
    cause = -1 - made.graph(0, 0, 0)
    made.run(0, 10, 200, cause=cause, key="crash-1", status=1)
    made._rows[made._workers[0]].clear()  # it died before it told of anything
    made.killed(200, "crash")
    assert said(made) == ("1 task failed (KilledWorker, crash)",)


def test_failures_of_workers_that_share_a_process_may_be_told_at_one_of_them() -> None:
    """As recordings of older versions have it."""
    made = Crewed(2)
    made._workers[1] = made._workers[1]._replace(pid=made._workers[0].pid)
    made._rows[made._workers[1]] = []
    made.fails(1, 200, "fetch-1")
    made.raised(0, "ValueError", "fetch", 8, at=200)
    assert said(made) == ("1 task failed (ValueError, fetch at etl.py:8)",)


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("program\tKeyboardInterrupt\t", "the program was interrupted (Ctrl-C)"),
        ("cell\tKeyboardInterrupt\t", "the cell was interrupted (Ctrl-C)"),
        ("program\tSystemExit\t3", "the program ended with exit status 3"),
        ("program\tSystemExit\t-1", "the program ended with exit status -1"),
        ("block\tValueError\t", "the block ended with ValueError"),
        ("\tValueError\t", "the run ended with ValueError"),
        ("elephant\t\tx", "the run ended with an exception"),
        ("program", ""),
        ("a\tb\tc\td", ""),
    ],
)
def test_how_the_program_ended_is_a_sentence(label: str, words: str) -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1", status=0)
    made.ended(label, at=500)
    assert said(made) == ((words,) if words else ())


@pytest.mark.parametrize(
    "label", ["ValueError", "\t", "a\tb\tc\td", "", "E\tfetch\tx:99999999999999999999"]
)
def test_a_label_that_makes_no_sense_costs_nothing_but_itself(label: str) -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1")
    made._rows[made._workers[0]].append((MARK, ns(200), "task failed", label))
    assert said(made)[0].startswith("1 task failed")


def test_long_names_take_two_lines_of_a_terminal_and_no_more() -> None:
    made = Crewed(1)
    made.fails(0, 200, f"{'x' * 300}-1", "Y" * 300)
    made.ended(f"program\t{'Y' * 300}\t")
    lines = terminal.text(summarize(made.recording(1000))).splitlines()
    assert len(lines) <= terminal.HEIGHT
    assert max(map(len, lines)) <= 80


def test_a_page_is_made_of_it_as_text() -> None:
    made = Crewed(1)
    made.fails(0, 200, "fetch-1", "<b onload=x>")
    recording = made.recording(1000)
    page = Page(notebook.html(summarize(recording)))
    assert "onload" not in page.names
    assert "<b onload" not in str(Store(recording).cards)
