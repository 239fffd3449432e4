"""Whatever is missing of a run, each face says so: what, how much, why and of whom."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import msgpack
import pytest
from click.testing import CliRunner

import stageprof
from preload.shipped import SCHEDULER, WORKER, at, begins, ends, shipped
from stageprof.commands.show import show
from stageprof_collectors.storage.file import Writer
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import MARK, Place
from stageprof_ui.columns import coverage

CLIENT = Place("client", "host", 3, "client", 0)
OTHER = "tcp://host:2"


def seen(*workers: str) -> list[Row]:
    """The scheduler's marks of workers that came."""
    return [(MARK, 1, "worker seen", f"{worker} 1 0 {i}") for i, worker in enumerate(workers)]


def region() -> bytes:
    """The client's region, a second long."""
    marks = (MARK, at(0), "region start", "-1 1"), (MARK, at(10), "region stop", "-1")
    return shipped(CLIENT, 0, *marks)


@dataclass(frozen=True)
class Loss:
    """What is missing, and how it is said."""

    #: what `coverage()` and the JSON have under these keys
    coverage: dict[str, Any] = field(default_factory=dict)
    #: what the summary says, and what the report says
    summary: tuple[str, ...] = ()
    report: tuple[str, ...] = ()
    #: how it is recorded: by what places tell, dropped, never sent, and bytes cut off the file
    rows: dict[Place, list[Row]] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    gap: int = 0
    cut: int = 0


def dropped() -> Loss:
    """Of three reasons."""
    drops = {"ring full": 1234, "hook failed: worker.transition": 10, "not packable: TypeError": 7}
    return Loss(
        {"dropped": drops},
        ("1,251 events dropped", *(f"{n:,} {why}" for why, n in drops.items())),
        tuple(f"{n:,} events dropped: {why}" for why, n in drops.items()),
        drops=drops,
    )


def never_came() -> Loss:
    """Batches that were sent."""
    return Loss(
        {"batches_lost": 3, "sources_lost": [WORKER.name]},
        ("3 batches lost", f"batches of {WORKER.name}"),
        ("3 batches were lost", f"sent by {WORKER.name}"),
        gap=3,
    )


def disabled() -> Loss:
    """A hook that is off, and one that looks now and then."""
    marks = ["scheduler.x: sampled", "worker.transition: failed 10 times, last: ValueError()"]
    return Loss(
        {"disabled": marks},
        ("2 hooks disabled", "off: worker.transition", "off: scheduler.x"),
        tuple(f"A hook was disabled: {mark}" for mark in marks),
        {WORKER: [(MARK, at(8), "hook disabled", mark) for mark in marks]},
    )


def absent() -> Loss:
    """A worker that could not be observed."""
    why = "ImportError: stageprof 0.0 is here, 0.1 at the client"
    mark = (MARK, 3, "not instrumented", f"{OTHER} {why}")
    return Loss(
        {"workers": 2, "instrumented": 1, "not_instrumented": {OTHER: why}},
        ("1/2 workers seen", f"not seen: {OTHER}"),
        ("1 of 2 workers were instrumented", f"{OTHER} was not: {why}"),
        {SCHEDULER: [*seen(OTHER), mark]},
    )


def killed() -> Loss:
    """A worker that died, and the end of what it did with it."""
    lost = (MARK, at(9), "worker lost", f"{WORKER.name} 1 0 0")
    return Loss(
        {"tails_lost": {WORKER.name: {"seconds": ANY, "tasks": 0, "died": True}}},
        ("1 dead worker's end lost", f"end of {WORKER.name}"),
        (f"{WORKER.name} died",),
        {SCHEDULER: [lost]},
    )


def stuck() -> Loss:
    """A worker that did not answer as the recording ended: nobody says that it died."""
    return Loss(
        {"tails_lost": {WORKER.name: {"seconds": ANY, "tasks": 0, "died": False}}},
        ("1 silent worker's end lost", f"end of {WORKER.name}"),
        (f"{WORKER.name} did not answer when the recording ended",),
        {SCHEDULER: [(MARK, at(9), "not drained", WORKER.name)]},
    )


def gone() -> Loss:
    """A cluster that went away."""
    mark = (MARK, at(9), "cluster lost", "client is closed")
    return Loss(
        {"problems": ["cluster lost: client is closed"]},
        ("1 problem", "cluster lost: client is closed"),
        ("Problem: cluster lost: client is closed",),
        {CLIENT: [mark]},
    )


def unended() -> Loss:
    """The recorder was killed."""
    return Loss({"complete": False}, ("recording incomplete",), ("is incomplete",), cut=1)


def everything() -> Loss:
    """All of them at once; in the summary there is room for how many, not for what each was."""
    made = [make() for make in KINDS]
    rows: dict[Place, list[Row]] = {}
    for loss in made:
        rows |= {place: [*rows.get(place, []), *more] for place, more in loss.rows.items()}
    return Loss(
        {key: value for loss in made for key, value in loss.coverage.items()},
        tuple(loss.summary[0] for loss in made),
        tuple(text for loss in made for text in loss.report),
        rows,
        dropped().drops,
        gap=3,
        cut=1,
    )


KINDS = (dropped, never_came, disabled, absent, killed, gone, unended)


def written(loss: Loss, path: Path) -> Path:
    """A whole run of one worker and one task, and a loss."""
    told, ended = ends(1, 5, 1)
    whole = [
        region(),
        shipped(SCHEDULER, 0, *seen(WORKER.name)),
        begins(1, 1),
        _again(told, 0),
        _again(ended, 2),
        pack(SCHEDULER, 3, at(11), loss.rows.get(SCHEDULER, [])),
        pack(WORKER, 1 + loss.gap, at(8), loss.rows.get(WORKER, []), drops=loss.drops),
        pack(CLIENT, 1, at(11), loss.rows.get(CLIENT, [])),
    ]
    with Writer(path, {"label": "made"}) as writer:
        assert writer.write(*whole)
    path.write_bytes(path.read_bytes()[: -loss.cut or None])
    return path


def _again(batch: bytes, seq: int) -> bytes:
    """The same batch under another number."""
    content = msgpack.unpackb(batch, unicode_errors="surrogatepass")
    packed: bytes = msgpack.packb(content | {"seq": seq}, unicode_errors="surrogatepass")
    return packed


def said(*words: str) -> str:
    """What `stageprof show` prints."""
    done = CliRunner().invoke(show, words)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize("kind", [*KINDS, stuck, everything])
def test_every_loss_is_in_every_face(kind: Callable[[], Loss], tmp_path: Path) -> None:
    """N1: coverage(), JSON, the summary, markdown, a notebook's card and the static report."""
    loss = kind()
    path = written(loss, tmp_path / "r.stageprof")
    recording = stageprof.open(path)
    in_json = json.loads(said("--json", str(path)))["coverage"]
    for face in (recording.coverage(), in_json):
        assert {key: face[key] for key in loss.coverage} == loss.coverage
    card = html.unescape(recording._repr_html_())
    for text in (said(str(path)), str(recording), said("--markdown", str(path)), card):
        line = " ".join(text.split())
        assert [part for part in loss.summary if part not in line] == []
    # One report shows them all; it takes a second to write.
    whole = kind is everything
    report = shown(recording, tmp_path / "r.html") if whole else sentences(recording)
    assert [part for part in loss.report if part not in report] == []


def sentences(recording: stageprof.Recording) -> str:
    """What the app's page of workers says below its charts."""
    return html.unescape(" ".join(coverage.coverage(recording)["sentences"]))


def shown(recording: stageprof.Recording, path: Path) -> str:
    """The texts of the report, whose markup is in JSON."""
    recording.report(path)
    text = path.read_text("utf-8")
    return html.unescape(html.unescape(text.replace("\\u0027", "'")))


def test_where_nothing_is_missing_no_face_says_otherwise(tmp_path: Path) -> None:
    """N1: "nothing lost" is said, too."""
    path = written(Loss(), tmp_path / "r.stageprof")
    recording = stageprof.open(path)
    assert recording.complete
    assert recording.coverage()["dropped"] == {}
    for text in (said(str(path)), said("--markdown", str(path)), recording._repr_html_()):
        assert "nothing lost" in text
        assert "Missing" not in text
    assert "Nothing was dropped or lost on the way." in shown(recording, tmp_path / "r.html")
