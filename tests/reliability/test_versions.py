"""Which versions of the format are read, and what is said of those that are not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgpack
import pytest

from faces.conftest import recorded
from reliability.badfiles import made, sealed
from reliability.test_bad_files import READING
from stageprof.cli import main
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.store import Store
from stageprof_runtime.batch import VERSION, pack
from stageprof_runtime.event import MARK, Place

__all__ = ["recorded"]  # a fixture

DATA = Path(__file__).parents[1] / "data"
HERE = Place("client", "h", 1, "c", 0)


def golden(minor: int) -> Path:
    return DATA / f"golden-{frame.MAJOR}.{minor}.stageprof"


def test_there_is_a_golden_recording_of_every_version() -> None:
    """B9: each release keeps one; tests/data/make_golden.py makes it."""
    assert all(golden(minor).is_file() for minor in range(frame.MINOR + 1))


@pytest.mark.parametrize("minor", range(frame.MINOR + 1))
def test_every_older_minor_is_read_in_full(minor: int, capsys: pytest.CaptureFixture[str]) -> None:
    """B9: own major, all minors: nothing is left out; what its rows are, tests/collectors says."""
    store = Store.open(golden(minor))
    assert (store.complete, store.skipped, store.batches) == (True, {}, 5)
    assert main(["inspect", str(golden(minor))]) == 0
    out = capsys.readouterr().out
    assert f"version {frame.MAJOR}.{minor}" in out
    assert "complete: 7 frames" in out


def test_a_newer_minor_is_read_but_for_what_it_added(tmp_path: Path) -> None:
    """B9: a frame that says that it may be skipped, and a table that nobody knows yet."""
    batch = msgpack.unpackb(pack(HERE, 0, 0, [(MARK, 1, "a", "b")]))
    batch["tables"]["invented"] = [3, {}]
    contents = [
        (frame.META, b"{}"), (frame.SKIPPABLE | 9, b"of later"),
        (frame.BATCH, frame.join([msgpack.packb(batch)])), (frame.END, b'{"frames": 3}'),
    ]  # fmt: skip
    path = tmp_path / "later.stageprof"
    path.write_bytes(_of_minor(frame.MINOR + 1, contents))
    store = Store.open(path)
    assert store.complete
    assert store.rows("mark") == 1
    assert store.skipped == {"unknown tables": 1}


def _of_minor(minor: int, contents: list[tuple[int, bytes]]) -> bytes:
    head = bytearray(frame.file_head(contents[0][1]))
    head[9] = minor
    return bytes(head) + b"".join(
        frame.encode(bytes(head), n, *content) for n, content in enumerate(contents)
    )


#: Segments hold no version but that of their batches.
LINES = [line for name, lines in READING.items() for line in lines if name != "attach"]


@pytest.mark.parametrize("line", LINES)
def test_a_newer_major_is_refused_with_both_versions(
    line: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """B9: by every command that reads, in one line that says what to do."""
    given = {"FILE": made("of a newer major", tmp_path), "GOOD": str(recorded),
             "OUT": str(tmp_path / "out"), "DIR": str(tmp_path)}  # fmt: skip
    assert main([given.get(word, word) for word in line.split()]) == 2
    said = capsys.readouterr().err
    assert f"version {frame.MAJOR + 1}.7" in said
    assert f"at most {frame.MAJOR}.{frame.MINOR}" in said
    assert "upgrade stageprof" in said


def test_an_older_major_that_never_was_is_damaged(tmp_path: Path) -> None:
    """B9: the checksums hold the version, so that nobody can change it alone."""
    path = tmp_path / "a.stageprof"
    data = bytearray(sealed((frame.META, b"{}")))
    data[8] = 0
    path.write_bytes(data)
    assert main(["inspect", str(path)]) == 2


def test_a_batch_of_another_version_is_left_out_and_counted() -> None:
    """B9: a worker with another stageprof, say."""
    fields: dict[str, Any] = msgpack.unpackb(pack(HERE, 0, 0, [(MARK, 1, "a", "b")]))
    store = Store()
    assert not store.add(msgpack.packb({**fields, "v": VERSION + 1}))
    assert store.skipped == {"damaged batch": 1}


def test_the_layout_says_which_versions_there_are() -> None:
    """B9: what `make_golden.py` would write next is not there yet, so none can be forgotten."""
    found = {p.name for p in DATA.glob("golden-*.stageprof")}
    numbers = {tuple(map(int, re.findall(r"\d+", name))) for name in found}
    assert max(numbers) == (frame.MAJOR, frame.MINOR)
