"""Files with keys, names and paths in them are for their owner alone, whatever the umask says."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from dask import delayed

import stageprof
from reliability.enemy import written
from stageprof.cli import main
from stageprof.export import FORMATS
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import Writer
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import RecordingNotWritable
from stageprof_runtime.event import Place
from stageprof_runtime.flight.folder import take
from stageprof_runtime.flight.segments import SUFFIX, Segments


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The worst: everything that is made may be read and written by everybody."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "run.stageprof"
    with stageprof.profile(path, gil=False):
        assert delayed(sum)([1, 2]).compute(scheduler="sync") == 3
    return path


@pytest.fixture
def recording(recorded: Path, tmp_path: Path) -> Path:
    """A recording that everybody may read, as an older tool or a copy may have left it."""
    path = tmp_path / "run.stageprof"
    shutil.copyfile(recorded, path)
    path.chmod(0o666)
    return path


def private(path: Path) -> bool:
    """Whether nobody else may do anything with a file, or with a folder and what is in it."""
    paths = [path, *path.rglob("*")] if path.is_dir() else [path]
    return all(stat.S_IMODE(each.stat().st_mode) & 0o077 == 0 for each in paths)


def test_a_recording(tmp_path: Path) -> None:
    with stageprof.profile(tmp_path / "a.stageprof", gil=False):
        pass
    assert private(tmp_path / "a.stageprof")


def test_a_recording_that_is_saved_later(tmp_path: Path) -> None:
    collector = Collector(None, savable=True)
    collector.save(tmp_path / "a.stageprof")
    collector.close()
    assert private(tmp_path / "a.stageprof")


@pytest.mark.parametrize("form", FORMATS)
def test_an_export(form: str, tmp_path: Path) -> None:
    """Of a recording in which each form finds what it holds: looks and calls, too."""
    full = written(tmp_path / "run.stageprof")
    full.chmod(0o666)
    out = tmp_path / "out"
    assert main(["export", str(full), "--to", form, "-o", str(out)]) == 0
    assert private(out)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_redacted_copy(recording: Path, tmp_path: Path) -> None:
    assert main(["export", str(recording), "--redact", "-o", str(tmp_path / "out")]) == 0
    assert private(tmp_path / "out")


def test_a_report_and_one_that_replaces_a_public_file(recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("older")
    assert main(["report", str(recording), "--force", "-o", str(page)]) == 0
    assert private(page)


def test_pages_and_texts_of_a_comparison(recording: Path, tmp_path: Path) -> None:
    page, text, data = (tmp_path / name for name in ("c.html", "c.md", "c.json"))
    text.write_text("older, and longer than what replaces it" * 1000)
    written = [f"--html={page}", f"--markdown={text}", f"--json={data}"]
    assert main(["compare", *written, str(recording), "--", str(recording)]) == 0
    assert private(page)
    assert private(text)
    assert private(data)
    assert "older" not in text.read_text()


def test_a_baseline(recording: Path, tmp_path: Path) -> None:
    folder = tmp_path / "baseline"
    assert main(["baseline", "save", str(recording), "--dir", str(folder), "--branch", "b"]) == 0
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) == 2
    assert all(map(private, files))


def test_segments_of_a_flight_recorder(tmp_path: Path) -> None:
    current, let_go = take(str(tmp_path / "flight"))
    segments = Segments(current, {"address": "tcp://10.0.0.1:1"}, 1, 1_000_000)
    segments.write([pack(Place("client", "host", 1, "client", 1), 0, 9, [])])
    segments.close()
    let_go()

    assert len(list((tmp_path / "flight").rglob(f"*{SUFFIX}"))) == 1
    assert private(tmp_path / "flight")


def test_a_link_to_a_recording_is_followed_and_what_it_leads_to_becomes_private(
    recording: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link.stageprof"
    link.symlink_to(recording)
    Writer(link, {}).close()
    assert link.is_symlink()
    assert private(recording)


def test_a_link_to_anything_else_is_refused(tmp_path: Path) -> None:
    other, link = tmp_path / "thesis.tex", tmp_path / "link.stageprof"
    other.write_text("years of work")
    link.symlink_to(other)
    with pytest.raises(RecordingNotWritable):
        Writer(link, {})
    assert other.read_text() == "years of work"


def test_an_export_replaces_a_link_and_not_what_it_leads_to(
    recording: Path, tmp_path: Path
) -> None:
    other, link = tmp_path / "thesis.tex", tmp_path / "page.html"
    other.write_text("years of work")
    link.symlink_to(other)
    assert main(["report", str(recording), "--force", "-o", str(link)]) == 0
    assert other.read_text() == "years of work"
    assert private(link)


def test_what_is_being_written_lies_where_nobody_looks(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its first byte and the end an export has another name, in a private folder."""
    seen: list[bool] = []

    def written(_: stageprof.Recording, path: Path) -> None:
        path.write_text("half")
        seen.append(stat.S_IMODE(path.parent.stat().st_mode) == 0o700)

    monkeypatch.setitem(FORMATS, "csv", FORMATS["csv"]._replace(write=written))
    assert main(["export", str(recording), "--to", "csv", "-o", str(tmp_path / "out")]) == 0
    assert seen == [True]
