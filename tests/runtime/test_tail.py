"""What a killed worker had not sent is kept where another one finds it, once, and nobody else."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgpack
import pytest

from stageprof_runtime import locked, tail
from stageprof_runtime.batch import pack
from stageprof_runtime.event import MARK, SUM, TABLES, Place
from stageprof_runtime.inheritance import inherited
from stageprof_runtime.ring import Ring
from stageprof_runtime.shipper import Shipper
from stageprof_runtime.tail import MOST, Tail

pytestmark = pytest.mark.skipif(not locked.AVAILABLE, reason="no locks of this kind here")

PLACE = Place("worker", "host", 7, "tcp://w:1", 42)
SESSION = "stageprof-of-a-test"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where tails are kept in a test."""
    monkeypatch.setattr(tail, "MEMORY", os.fspath(tmp_path))
    return tmp_path


def mark(i: int) -> tuple[Any, ...]:
    return (MARK, i, "name", f"label {i}")


def sums(i: int) -> list[tuple[Any, ...]]:
    return [(SUM, i, 3, i, 10 * i, 0)]


@contextmanager
def owner(folder: Path, does: str) -> Iterator[subprocess.Popen[str]]:
    """A process that keeps a tail and waits, until the block ends or kills it."""
    program = f"""
        import os, sys
        from stageprof_runtime import tail
        from stageprof_runtime.event import Place
        tail.MEMORY = {os.fspath(folder)!r}
        t = tail.Tail({SESSION!r}, Place(*{tuple(PLACE)!r}))
        {does}
        print("ready", flush=True)
        sys.stdin.read()
    """
    words = [sys.executable, "-c", textwrap.dedent(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def killed(folder: Path, does: str) -> None:
    """A process kept a tail and was killed."""
    with owner(folder, does) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()


def tables(batch: bytes) -> dict[str, int]:
    return {name: n for name, (n, _) in msgpack.unpackb(batch)["tables"].items()}


def test_what_a_killed_process_kept_is_the_batch_that_it_would_have_sent(folder: Path) -> None:
    killed(folder, f"t.keep({[mark(1)]!r}, []); t.keep({[mark(2)]!r}, {sums(2)!r})")
    (batch,) = inherited(SESSION)
    t = msgpack.unpackb(batch)["t"]
    assert batch == pack(PLACE, 0, t, [mark(1), mark(2), *sums(2)])
    assert t > 0


def test_where_a_program_closed_the_file_the_next_goes_to_a_new_one(folder: Path) -> None:
    """Which is whole: it begins as it must, and nobody's file is written to meanwhile."""
    theirs = folder / "theirs"
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    os.close(mine._file)
    with theirs.open("wb"), pytest.raises(OSError, match="Bad file descriptor"):
        mine.keep([mark(2)], [])
    mine.keep([mark(3)], [])
    mine.let_go()
    assert theirs.read_bytes() == b""
    [batch] = inherited(SESSION)
    assert b"label 3" in batch


def test_of_sums_the_latest_are_taken(folder: Path) -> None:
    killed(folder, f"t.keep({[mark(1)]!r}, {sums(1)!r}); t.keep({[mark(2)]!r}, {sums(2)!r})")
    (batch,) = inherited(SESSION)
    assert tables(batch) == {TABLES[MARK]: 2, TABLES[SUM]: 1}


def test_what_was_on_its_way_comes_again_and_what_came_since_is_the_next(folder: Path) -> None:
    told = "7, {'ring full': 3}, {'ship': [1, 2]}, 4, [5, 6, 7]"
    does = f"t.keep([{mark(1)!r}], []); t.sent([b'batch 6'], {told}); t.keep([{mark(2)!r}], [])"
    killed(folder, does)
    before, batch = inherited(SESSION)
    assert before == b"batch 6"
    said = msgpack.unpackb(batch)
    assert (said["seq"], said["drops"], said["cost"]) == (7, {"ring full": 3}, {"ship": [1, 2]})
    assert (said["now"], said["counts"]) == (4, [5, 6, 7])
    assert tables(batch) == {TABLES[MARK]: 1}


def test_what_it_had_of_others_comes_again_whatever_it_keeps_itself(folder: Path) -> None:
    """A worker that was to send what another one had left is killed, too."""
    does = f"t.keep([{mark(1)!r}], []); t.carry([b'of another']); t.keep([{mark(2)!r}], [])"
    killed(folder, does)
    of_another, batch = inherited(SESSION)
    assert of_another == b"of another"
    assert tables(batch) == {TABLES[MARK]: 2}


@pytest.mark.parametrize("left", [False, True])
def test_what_it_had_of_others_is_kept_until_that_has_left(folder: Path, left: bool) -> None:
    sent = "t.sent([b'%s'], 7, {}, {}, 0, [0, 0, 0], left=%s)"
    killed(folder, f"t.carry([b'of another']); {sent % (6, False)}; {sent % (7, left)}")
    expected = [b"6", b"7"] if left else [b"of another", b"6", b"7"]
    assert inherited(SESSION) == expected


def test_what_is_taken_once_is_gone(folder: Path) -> None:
    killed(folder, f"t.keep([{mark(1)!r}], [])")
    assert len(inherited(SESSION)) == 1
    assert inherited(SESSION) == []
    assert [p for p in folder.rglob("*") if p.is_file()] == []


def test_nothing_is_taken_from_a_process_that_lives(folder: Path) -> None:
    with owner(folder, f"t.keep([{mark(1)!r}], [])"):
        assert inherited(SESSION) == []
        assert len(list(folder.rglob("*.tail"))) == 1


def test_another_session_takes_nothing(folder: Path) -> None:
    killed(folder, f"t.keep([{mark(1)!r}], [])")
    assert inherited("stageprof-another") == []
    assert len(inherited(SESSION)) == 1


@pytest.mark.parametrize(
    ("left", "kept"),
    [(("True", "True", "True"), [2, 3]), (("True", "False", "False"), [1, 2, 3])],
)
def test_batches_stay_until_they_are_known_to_have_left(
    left: tuple[str, ...], kept: list[int], folder: Path
) -> None:
    """Of those that have, the last may be half-way."""
    does = f"t.keep([{mark(0)!r}], [])"
    for i, known in enumerate(left, 1):
        does += f"; t.sent([b'{i}'], {i + 1}, {{}}, {{}}, 0, [0, 0, 0], left={known})"
    killed(folder, does)
    assert inherited(SESSION) == [f"{i}".encode() for i in kept]


def test_what_never_leaves_takes_no_more_room_than_a_file_may(folder: Path) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(0)], [])
    for i in range(10):
        mine.sent([bytes(MOST // 4)], i, {}, {}, 0, [0, 0, 0], left=False)
    assert MOST // 2 <= mine._size <= MOST
    mine.close()


def test_one_that_ends_in_good_order_leaves_nothing(folder: Path) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    mine.close()
    mine.keep([mark(2)], [])
    mine.sent([b"3"], 1, {}, {}, 0, [0, 0, 0])
    assert list(folder.iterdir()) == []


def test_that_nothing_came_is_kept_too(folder: Path) -> None:
    """Or a worker that was idle before it was killed would seem to have done something unseen."""
    killed(folder, f"t.keep({[mark(1)]!r}, {sums(1)!r}); t.keep([], [])")
    (batch,) = inherited(SESSION)
    assert tables(batch) == {TABLES[MARK]: 1, TABLES[SUM]: 1}
    before = Tail(SESSION, PLACE)
    before.keep([], [])
    assert list(folder.rglob("*.*")) == []
    before.close()


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_cannot_send_its_last_leaves_it_to_others(kept: bool, folder: Path) -> None:
    neighbour = Tail(SESSION, PLACE)
    neighbour.keep([mark(1)], [])
    does = f"t.keep([{mark(2)!r}], [])\n        " * kept + "t.leave([b'1', b'2'])"
    with owner(folder, does):  # which may go on for a while
        assert inherited(SESSION) == [b"1", b"2"]
        assert inherited(SESSION) == []
    neighbour.close()


@pytest.mark.parametrize("kept", [True, False])
def test_one_that_has_no_neighbours_leaves_nothing(kept: bool, folder: Path) -> None:
    """As the last worker of a cluster that ends: who would take it away?"""
    mine = Tail(SESSION, PLACE)
    if kept:
        mine.keep([mark(1)], [])
    mine.leave([b"1"])
    assert list(folder.iterdir()) == []


def test_the_last_of_a_session_removes_its_folder_and_a_new_one_makes_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = Tail(SESSION, PLACE), Tail(SESSION, PLACE._replace(life=43))
    first.keep([mark(1)], [])
    sweep, left = tail.sweep, [first]

    def swept(base: str) -> None:
        sweep(base)
        while left:
            left.pop().close()

    monkeypatch.setattr(tail, "sweep", swept)
    second.keep([mark(2)], [])
    assert len(list(folder.rglob("*.tail"))) == 1
    Tail(SESSION, PLACE).close()  # which is not the last
    assert len(list(folder.rglob("*.tail"))) == 1
    second.close()
    assert list(folder.iterdir()) == []


def test_one_that_kept_nothing_makes_no_file(folder: Path) -> None:
    mine = Tail(SESSION, PLACE)
    mine.sent([b"1"], 1, {}, {}, 0, [0, 0, 0])
    mine.close()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_a_file_that_was_not_written_to_its_end_is_read_as_far_as_it_goes(
    cut: int, folder: Path
) -> None:
    killed(folder, f"t.keep([{mark(1)!r}], []); t.keep([{mark(2)!r}], [])")
    (file,) = folder.rglob("*.tail")
    whole = file.read_bytes()
    file.write_bytes(whole[:cut])
    found = [tables(batch) for batch in inherited(SESSION)]
    assert found == ([{TABLES[MARK]: 1}] if cut == -1 else [])


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    there = folder / f"{tail._prefix()}{SESSION}"
    there.mkdir()
    there.chmod(0o777)
    with pytest.raises(PermissionError, match="of this user alone"):
        Tail(SESSION, PLACE).keep([mark(1)], [])
    assert inherited(SESSION) == []


def test_a_link_to_a_folder_is_not_used(folder: Path, tmp_path_factory: Any) -> None:
    (folder / f"{tail._prefix()}{SESSION}").symlink_to(tmp_path_factory.mktemp("elsewhere"))
    with pytest.raises(PermissionError):
        Tail(SESSION, PLACE).keep([mark(1)], [])


def test_files_are_for_this_user_alone(folder: Path) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    assert {p.stat().st_mode & 0o077 for p in folder.rglob("*")} == {0}
    mine.close()


def test_a_forked_child_lets_go_so_that_its_parent_s_tail_is_found(folder: Path) -> None:
    """Or the lock would be kept for as long as the child lives."""
    does = f"""t.keep([{mark(1)!r}], [])
        there, here = os.pipe()
        if not os.fork():
            os.write(here, b".")
            sys.stdin.read()
            os._exit(0)
        os.read(there, 1)"""
    killed(folder, does)  # the child reads on
    assert len(inherited(SESSION)) == 1


def test_what_nobody_came_for_is_removed_when_it_is_old(folder: Path) -> None:
    killed(folder, f"t.keep([{mark(1)!r}], [])")
    (file,) = folder.rglob("*.tail")
    for path in (file, file.parent):
        os.utime(path, (1, 1))
    mine = Tail("stageprof-later", PLACE)
    mine.keep([mark(1)], [])
    assert not file.exists()
    mine.close()


def old(file: Path) -> Path:
    """A file, made as if nobody had touched it or its folder for years."""
    file.parent.mkdir(exist_ok=True)
    file.write_text("dear")
    for path in (file, file.parent):
        os.utime(path, (1, 1))
    return file


def test_a_link_with_the_name_of_a_folder_of_tails_has_nothing_swept(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Anybody may put it where all keep their tails: what it leads to is the user's own."""
    own = old(tmp_path_factory.mktemp("own") / "thesis.txt")
    (folder / f"{tail._prefix()}x").symlink_to(own.parent)
    tail.sweep(os.fspath(folder))
    assert own.exists()


def test_a_folder_that_others_may_write_to_is_not_swept(folder: Path) -> None:
    file = old(folder / f"{tail._prefix()}x" / "1-1.tail")
    file.parent.chmod(0o777)
    tail.sweep(os.fspath(folder))
    assert file.exists()
    file.parent.chmod(0o700)
    tail.sweep(os.fspath(folder))
    assert list(folder.iterdir()) == []


def test_a_folder_that_becomes_a_link_while_it_is_swept_loses_only_its_own(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As can be where the folder for temporary files lets others rename what is in it."""
    file = old(folder / f"{tail._prefix()}x" / "1-1.tail")
    file.parent.chmod(0o700)
    own = old(tmp_path_factory.mktemp("own") / file.name)
    is_owned = locked.is_owned

    def late(path: str) -> bool:
        file.parent.rename(folder / "moved")
        file.parent.symlink_to(own.parent)
        return is_owned(path)

    monkeypatch.setattr(locked, "is_owned", late)
    tail.sweep(os.fspath(folder))
    assert own.exists()


def test_a_tail_has_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "MOST", 1_000)
    mine = Tail(SESSION, PLACE)
    for i in range(1_000):
        mine.keep([mark(i)], [])
    (file,) = folder.rglob("*.tail")
    assert 1_000 < file.stat().st_size < 1_200
    mine.sent([b"x" * 2_000], 1, {}, {}, 0, [0, 0, 0])
    assert file.stat().st_size < 200
    mine.close()


def test_what_finds_no_room_is_left_out_and_the_rest_is_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    write = os.pwrite
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", lambda file, what, at: write(file, what[:9], at))
        with pytest.raises(OSError, match="No space left"):
            mine.keep([mark(2)], [])
    mine.keep([mark(3)], [])
    mine.let_go()
    (batch,) = inherited(SESSION)
    assert [text for text in msgpack.unpackb(batch)["strings"] if "label" in text] == [
        "label 1", "label 3",
    ]  # fmt: skip


def test_a_file_that_found_no_room_for_its_beginning_begins_once_there_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", _no_room)
        with pytest.raises(OSError, match="No space left"):
            mine.sent([b"batch 0"], 1, {"ring full": 3}, {}, 0, [0, 0, 0])
        with pytest.raises(OSError, match="No space left"):
            mine.keep([mark(2)], [])
    mine.keep([mark(3)], [])
    mine.let_go()
    before, batch = inherited(SESSION)
    assert before == b"batch 0"
    assert msgpack.unpackb(batch)["seq"] == 1
    assert labels(batch) == ["label 3"]


def test_where_there_is_room_for_little_what_was_sent_goes_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has most likely arrived; what was not sent is nowhere else."""
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    write = os.pwrite

    def small(file: int, what: bytes, at: int) -> int:
        return _no_room() if len(what) > 1_000 else write(file, what, at)

    monkeypatch.setattr(os, "pwrite", small)
    mine.sent([b"x" * 2_000], 1, {}, {}, 0, [0, 0, 0])
    mine.keep([mark(2)], [])
    mine.let_go()
    (batch,) = inherited(SESSION)
    assert labels(batch) == ["label 2"]


def test_one_look_with_huge_keys_fills_no_memory(folder: Path) -> None:
    mine = Tail(SESSION, PLACE)
    mine.keep([mark(1)], [])
    mine.keep([(MARK, 2, "name", "k" * MOST)] * 3, [])
    mine.keep([mark(3)], [])
    mine.let_go()
    (batch,) = inherited(SESSION)
    assert labels(batch) == ["label 1", "label 3"]


def _no_room(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Full(Tail):
    """Never has room."""

    def keep(self, rows: object, sums: object) -> None:  # noqa: ARG002
        raise OSError("no room")


def test_a_tail_that_fails_costs_no_row_and_is_put_away(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[bytes] = []
    shipper = Shipper(PLACE, Ring(), sent.append)
    shipper.tail = Full(SESSION, PLACE)
    shipper.rounds = lambda: 100
    for i in range(20):
        shipper.ring.emit(mark(i))
        shipper._round()
    sent += shipper.drain()
    rows = [row for batch in sent for row in labels(batch)]
    assert [row for row in rows if row.startswith("label")] == [f"label {i}" for i in range(20)]
    (told,) = (row for row in rows if row.startswith("worker.tail"))
    assert "no room" in told
    assert len(caplog.records) <= 1


def labels(batch: bytes) -> list[str]:
    """Of the marks in a batch, in their order."""
    said = msgpack.unpackb(batch)
    _, columns = said["tables"].get(TABLES[MARK], (0, {"label": ("q", 0, b"")}))
    return [said["strings"][i] for i in array("q", columns["label"][2])]


def test_labels_of_any_kind_are_kept_as_a_batch_has_them(folder: Path) -> None:
    labels = [("x", 1, (2, 3)), "text", 5, b"bytes", 1.5, None, "\ud800"]
    rows = [(MARK, i, "name", label) for i, label in enumerate(labels)]
    killed(folder, f"t.keep({rows!r}, [])")
    (batch,) = inherited(SESSION)
    t = msgpack.unpackb(batch, unicode_errors="surrogatepass")["t"]
    assert batch == pack(PLACE, 0, t, rows)
