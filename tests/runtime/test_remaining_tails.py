"""What workers had kept that are gone, and nobody has taken: the client does, who looks last."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgpack
import pytest

from runtime.test_last_batches import Stream, ending
from runtime.test_tail import PLACE, folder, mark, tables
from stageprof_runtime import heir as heirs
from stageprof_runtime import locked, tail
from stageprof_runtime.event import MARK, TABLES
from stageprof_runtime.heir import Heir
from stageprof_runtime.tail import KEPT, Tail, folder_of

if sys.platform != "win32":
    import fcntl

__all__ = ["folder"]  # a fixture

pytestmark = pytest.mark.skipif(not locked.AVAILABLE, reason="no locks of this kind here")


def remaining(session: str) -> list[bytes]:
    """What its client takes."""
    return Heir(session).take()


def killed(heir: Heir) -> None:
    """The kernel closes what a process has open."""
    assert heir._there is not None
    heir._there.let_go()


def orphan(*rows: Any, life: int = 1, sent: bytes = b"", session: str = "s") -> None:
    """What a worker leaves that was killed."""
    kept = Tail(session, PLACE._replace(life=life))
    if sent:
        kept.sent([sent], 1, {}, {}, 0, [0, 0, 0])
    kept.keep(rows, [])
    kept.let_go()


def test_it_is_taken_and_nothing_stays(folder: Path) -> None:
    orphan(mark(1))
    orphan(mark(2), life=2)
    assert [tables(batch) for batch in remaining("s")] == 2 * [{TABLES[MARK]: 1}]
    assert list(folder.iterdir()) == []


def test_a_client_that_waits_takes_what_is_left_as_the_run_goes_on(folder: Path) -> None:
    """After the last worker has gone it may go on for long, and be killed."""
    heir = Heir("s")
    orphan(mark(1), life=1)
    assert heir.left() == []  # no cluster is joined yet: it does not ask
    heir.wait()
    assert [tables(batch) for batch in heir.left()] == [{TABLES[MARK]: 1}]
    assert heir.left() == []
    orphan(mark(2), life=2)
    assert len(heir.take()) == 1
    assert heir.left() == []
    assert list(folder.iterdir()) == []


def test_of_a_session_without_any_there_is_nothing(folder: Path) -> None:
    orphan(mark(1), session="another")
    assert remaining("s") == []
    assert len(remaining("another")) == 1


def test_that_of_a_worker_which_is_still_there_stays(folder: Path) -> None:
    alive = Tail("s", PLACE)
    alive.keep([mark(1)], [])
    orphan(mark(2))
    (batch,) = remaining("s")
    assert "label 2" in msgpack.unpackb(batch)["strings"]
    assert len(list(folder.rglob("*.tail"))) == 1
    alive.close()
    assert list(folder.iterdir()) == []


def test_where_the_last_worker_takes_the_folder_away_meanwhile_there_is_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan(mark(1))
    scan = os.scandir

    def gone(path: str) -> Any:
        for name in os.listdir(path):  # noqa: PTH208 (which may ask what is replaced here)
            Path(path, name).unlink()
        Path(path).rmdir()
        return scan(path)

    monkeypatch.setattr(os, "scandir", gone)
    assert remaining("s") == []


def test_a_row_that_cannot_be_packed_costs_nothing_else_and_is_counted(folder: Path) -> None:
    orphan((MARK, 2**63, "too large for a column", ""), life=1, sent=b"before")
    orphan(mark(2), life=2)
    before, without, other = sorted(remaining("s"), key=len)
    assert before == b"before"
    assert tables(without) == {}
    assert msgpack.unpackb(without)["drops"] == {"not packable: OverflowError": 1}
    assert tables(other) == {TABLES[MARK]: 1}


@pytest.mark.parametrize("left", [b"", b"\x93\x01\x90\x90", b"\x05", b"no msgpack at all", b"\xc1"])
def test_a_file_that_makes_no_sense_costs_the_others_nothing(folder: Path, left: bytes) -> None:
    orphan(mark(1), life=1)
    (file,) = folder.rglob("*.tail")
    file.with_name(f"0{KEPT}").write_bytes(left)
    file.with_name(f"9{KEPT}").write_bytes(left)
    (batch,) = remaining("s")
    assert tables(batch) == {TABLES[MARK]: 1}
    assert list(folder.iterdir()) == []


def test_a_worker_that_closes_sends_what_others_have_left(folder: Path) -> None:
    orphan(mark(1))
    stream = Stream()
    ending(stream).teardown(None)
    assert stream.sent[:1] + stream.sent[2:] == [b"1", b"2"]
    assert tables(stream.sent[1]) == {TABLES[MARK]: 1}
    assert list(folder.rglob("*.tail")) == []


def test_a_worker_that_sends_nothing_any_more_takes_nothing(folder: Path) -> None:
    """It was drained, and has not been told to end yet, when another one is killed."""
    stream = Stream()
    probe = ending(stream)
    assert asyncio.run(probe._drain())[1:] == [b"1", b"2"]
    orphan(mark(1))
    probe.teardown(None)
    assert stream.sent == []
    assert len(remaining("s")) == 1
    assert list(folder.iterdir()) == []


def test_a_worker_whose_stream_is_closed_leaves_what_it_has_while_the_client_waits(
    folder: Path,
) -> None:
    """Dask ends a worker without a nanny so, and there may be no other on its host."""
    heir = Heir("s")
    heir.wait()
    heir.wait()  # of a second cluster
    Tail("s", PLACE).leave([b"1", b"2"])
    assert heir.take() == [b"1", b"2"]
    assert list(folder.iterdir()) == []


def test_it_leaves_nothing_once_the_client_waits_no_more(folder: Path) -> None:
    heir = Heir("s")
    heir.wait()
    assert heir.take() == []
    Tail("s", PLACE).leave([b"1"])
    assert list(folder.iterdir()) == []


def test_it_leaves_nothing_to_a_client_that_was_killed(folder: Path) -> None:
    """Nobody would ever take it."""
    heir = Heir("s")
    heir.wait()
    killed(heir)
    Tail("s", PLACE).leave([b"1"])
    assert list(folder.iterdir()) == []


def test_it_leaves_nothing_to_a_neighbour_that_was_killed(folder: Path) -> None:
    orphan(mark(1))
    Tail("s", PLACE).leave([b"1"])
    assert [tables(batch) for batch in remaining("s")] == [{TABLES[MARK]: 1}]


def test_what_a_killed_client_has_left_is_swept_by_the_next_one_an_hour_later(
    folder: Path,
) -> None:
    gone, waits, comes = Heir("killed"), Heir("waits"), Heir("comes")
    for heir in (gone, waits):
        heir.wait()
    killed(gone)
    for path in (*folder.rglob("*.heir"), *folder.iterdir()):
        os.utime(path, (0, 0))
    comes.wait()
    there = {path.name.rpartition("-")[2] for path in folder.iterdir()}
    assert there == {"waits", "comes"}
    assert [waits.take(), comes.take()] == [[], []]
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_does_not_wait_in_its_parent_s_place(folder: Path) -> None:
    heir = Heir("s")
    heir.wait()
    (path,) = folder.rglob("*.heir")
    ready, there = os.pipe()
    child = os.fork()
    if not child:
        os.write(there, b".")
        signal.pause()
    try:
        os.read(ready, 1)
        killed(heir)
        assert not locked.is_owned(os.fspath(path))
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(there)


def test_what_is_left_just_when_the_client_has_looked_is_taken_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heir, mine = Heir("s"), Tail("s", PLACE)
    heir.wait()
    make = mine._make

    def late() -> None:
        assert heir.take() == []
        make()

    monkeypatch.setattr(mine, "_make", late)
    mine.leave([b"1"])
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("when", ["before its folder", "before its file", "after its file"])
def test_one_that_ends_while_it_is_about_to_wait_leaves_nothing(
    when: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session gives the thread that waits two seconds, and ends then."""
    heir, made = Heir("s"), list[Any]()
    where = {"before its folder": "folder_of", "before its file": "Locked"}.get(when, "sweep")
    plain = getattr(heirs, where)

    def late(path: str, *args: Any, **kwargs: Any) -> Any:
        assert heir.take() == []
        if where == "Locked":  # it made the folder just before
            folder_of("s", make=True)
        made.append(plain(path, *args, **kwargs))
        return made[0]

    monkeypatch.setattr(heirs, where, late)
    heir.wait()
    assert made
    assert heir._there is not None
    assert heir._there.file < 0
    assert list(folder.iterdir()) == []


def test_one_whose_folder_is_taken_away_as_it_ends_has_not_failed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is none any more for its file, and nobody who needs that."""
    heir, plain = Heir("s"), locked.Locked

    def late(path: str) -> Any:
        heir.take()
        return plain(path)

    monkeypatch.setattr(heirs, "Locked", late)
    heir.wait()
    assert list(folder.iterdir()) == []


def test_nothing_of_a_client_stays_where_taking_what_is_left_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: str) -> list[bytes]:
        raise MemoryError("planted")

    monkeypatch.setattr("stageprof_runtime.heir.inherited", fail)
    waits, fails = Heir("s"), Heir("another")
    for each in (waits, fails):
        each.wait()
    with pytest.raises(MemoryError):
        fails.take()
    for each in (waits, fails):
        each.end()
        each.end()
    assert list(folder.iterdir()) == []
    waits.wait()  # it is over
    assert list(folder.iterdir()) == []


def test_what_the_client_waits_for_is_swept_by_nobody_however_long(folder: Path) -> None:
    heir = Heir("s")
    heir.wait()
    Tail("s", PLACE).leave([b"1"])
    for path in (*folder.rglob("*.*"), *folder.iterdir()):
        os.utime(path, (0, 0))
    other = Heir("another")
    other.wait()
    assert heir.take() == [b"1"]
    assert other.take() == []
    assert list(folder.iterdir()) == []


def test_who_asks_whether_an_owner_is_there_does_not_hinder_who_asks_too(folder: Path) -> None:
    path = folder / "x"
    path.touch()
    with path.open() as asking:
        fcntl.flock(asking, fcntl.LOCK_SH)
        assert not locked.is_owned(os.fspath(path))


def test_a_file_that_cannot_be_locked_does_not_stay(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a folder for temporary files on some file systems of a network."""

    def no_locks(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(OSError, match="No locks"):
        locked.Locked(os.fspath(folder / "x"))
    assert list(folder.iterdir()) == []


def test_where_there_is_no_folder_for_it_that_is_tried_once(folder: Path) -> None:
    """Or each half second would count as a failure."""
    Path(tail.folder_of("s", make=True)).chmod(0o777)
    heir = Heir("s")
    with pytest.raises(PermissionError):
        heir.wait()
    heir.wait()
    assert heir.take() == []
