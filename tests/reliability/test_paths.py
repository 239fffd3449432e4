"""Nothing outside of what was named is read or written, whatever a name or an address may say."""

from __future__ import annotations

import http.client
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from benchmarks.generate import generate
from serving import running
from stageprof.app import listed
from stageprof.cli import main
from stageprof.export import FORMATS
from stageprof_collectors.storage.collector import Collector
from stageprof_collectors.storage.file import Writer, read_frames
from stageprof_collectors.storage.frame import BATCH, split
from stageprof_runtime.errors import StageprofError, UsageError
from stageprof_ui.guard import cookie
from stageprof_ui.live import Run

SECRET: Final = "the secret"

#: Addresses of the app by which somebody might want to get at another file.
ADDRESSES: Final = (
    "/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//etc/hostname", "/etc/hostname",
    "/static/../../../../../../../../etc/hostname", "/static/%2e%2e/%2e%2e/%2e%2e/etc/hostname",
    "/static/..%2f..%2f..%2f..%2f..%2fetc/hostname", "/static/extensions/panel/../../../../x",
    "/components/stageprof/%2e%2e/secret.txt", "/static//etc/hostname", "/\\..\\secret.txt",
    *(f"/?recording={name}" for name in (
        "../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "/etc/hostname",
        "%2Fetc%2Fhostname", "link.stageprof", "fifo.stageprof", "device.stageprof",
        "folder.stageprof", "secret.txt",
        "good.stageprof%00", "%00", "good.stageprof/../../secret.txt", ".", "..", "%ff%fe",
    )),
    "/?file=/etc/hostname", "/?path=../secret.txt",
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recording among things that are none, and a file outside."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text(SECRET)
    made = outside / "folder"
    made.mkdir()
    generate(made / "good.stageprof", tasks=50)
    (made / "secret.txt").write_text(SECRET)
    (made / "link.stageprof").symlink_to(outside / "secret.txt")
    (made / "device.stageprof").symlink_to("/dev/zero")
    (made / "folder.stageprof").mkdir()
    os.mkfifo(made / "fifo.stageprof")
    return made


#: Set while somebody wants to know which files are opened; a hook cannot be taken away.
_opened: list[str] | None = None


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    path = arguments[0] if event == "open" and _opened is not None else None
    if _opened is not None and isinstance(path, str | bytes | os.PathLike):
        _opened.append(os.fsdecode(path))


@pytest.fixture(scope="module")
def watched_opens() -> Callable[[], object]:
    """A block in which every file that this process opens is noted."""
    sys.addaudithook(_hook)

    @contextmanager
    def watching() -> Iterator[list[str]]:
        global _opened  # noqa: PLW0603 (the hook stays as long as the process)
        found: list[str] = []
        _opened = found
        yield found
        _opened = None

    return watching


def test_no_address_of_the_app_leads_out_of_its_folder(
    folder: Path, watched_opens: Callable[[], Iterator[list[str]]]
) -> None:
    """B8, T21: no file is opened but those listed, and no answer holds what is in another."""
    with listed(str(folder)) as app, running(app), watched_opens() as opened:  # type: ignore[attr-defined]
        token = f"{cookie(app.port)}={app.url.partition('=')[2]}"
        for address in ("/?recording=good.stageprof", *ADDRESSES):
            connection = http.client.HTTPConnection("127.0.0.1", app.port, timeout=30)
            connection.putrequest("GET", address, skip_host=True)
            connection.putheader("Host", f"127.0.0.1:{app.port}")
            connection.putheader("Cookie", token)
            connection.endheaders()
            said = connection.getresponse().read().decode("utf-8", "replace")
            connection.close()
            assert SECRET not in said, address
    names = {Path(path).name for path in opened}
    assert "good.stageprof" in names  # they were noted
    assert not names & {"secret.txt", "hostname", "fifo.stageprof", "zero", "link.stageprof",
                        "device.stageprof"}  # fmt: skip


@pytest.mark.parametrize("branch", ["../../out", "/etc/out", "..", ".", "a\0b", "%2e%2e/x", "-o"])
def test_no_branch_leads_out_of_a_baseline(folder: Path, tmp_path: Path, branch: str) -> None:
    """B8: a branch is a name, whatever it is called."""
    kept = tmp_path / "base" / "line"
    words = ["baseline", "save", str(folder / "good.stageprof"), "--dir", str(kept)]
    assert main([*words, f"--branch={branch}"]) == 0
    made = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(made) == 2
    assert all(path.is_relative_to(kept) for path in made)


def test_no_link_in_a_baseline_is_followed(folder: Path, tmp_path: Path) -> None:
    """B8: `prune` removes nothing outside, though a link in the baseline leads there."""
    kept, other = tmp_path / "kept", tmp_path / "other"
    for place in (kept, other):
        words = ["baseline", "save", str(folder / "good.stageprof"), "--dir", str(place)]
        assert main([*words, "--branch", "b"]) == 0
    (kept / "link").symlink_to(other, target_is_directory=True)
    assert main(["baseline", "prune", str(kept), "--keep", "0"]) == 0
    assert list(other.rglob("*.stageprof"))
    assert not [path for path in kept.rglob("*.stageprof") if not path.is_symlink()]


@pytest.mark.parametrize("name", ["../r.html", "/dev/null", "%2e%2e/r", "a\0b", "fifo", "..", "."])
def test_the_name_in_a_recording_names_no_file(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """B8: what is written goes by the name of the file, never by what is in it."""
    here = tmp_path / "here"
    here.mkdir()
    os.mkfifo(here / "fifo")
    monkeypatch.chdir(here)
    with Writer("x.stageprof", {"label": name, "program": name, "path": name}) as writer:
        for found in read_frames(folder / "good.stageprof"):
            if found.type == BATCH:
                writer.write(*map(bytes, split(found.raw)))
    assert main(["export", "x.stageprof", "--to", "csv"]) == 0
    assert list(tmp_path.iterdir()) == [here]
    made = f"x{FORMATS['csv'].suffix}"
    assert {path.name for path in here.iterdir()} == {"x.stageprof", "fifo", made}


def test_only_a_plain_name_is_saved_under(folder: Path) -> None:
    """B8: nor may a browser say where the app saves; the rest is in tests/ui/test_live.py."""
    collector = Collector(None, savable=True)
    collector.close()
    run = Run(collector, alive=lambda: True, end=lambda: None, folder=folder)
    before = sorted(folder.rglob("*"))
    for name in ("../x", "/tmp/x", "%2e%2e/x", "a\0", "fifo/x", "link.stageprof/..", "."):
        with pytest.raises(UsageError):
            run.save(name)
    with pytest.raises(StageprofError):
        run.save("link.stageprof")
    assert sorted(folder.rglob("*")) == before
    assert (folder.parent / "secret.txt").read_text() == SECRET
