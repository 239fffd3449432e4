"""The folder of a flight recorder is its own, and nobody else's is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stageprof_runtime.flight.folder import take


def test_a_folder_is_one_recorders_and_keeps_the_life_before(tmp_path: Path) -> None:
    current, let_go = take(str(tmp_path / "kept"))
    with pytest.raises(OSError, match="another scheduler"):
        take(str(tmp_path / "kept"))
    for life in ("a", "b", "c"):
        (Path(current) / f"{life}.segment").write_text(life)
        let_go()
        current, let_go = take(str(tmp_path / "kept"))
    let_go()

    assert list(Path(current).iterdir()) == []
    assert [path.name for path in (tmp_path / "kept" / "previous").iterdir()] == ["c.segment"]


def _a_file(path: Path) -> None:
    path.mkdir()
    (path / "1.segment").touch()
    (path / "app.py").touch()


def _a_folder(path: Path) -> None:
    (path / "1.segment").mkdir(parents=True)


def _a_link(path: Path) -> None:
    release = path.with_name("release-1")
    release.mkdir()
    path.symlink_to(release)


def _nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


@pytest.mark.parametrize("name", ["current", "previous"])
@pytest.mark.parametrize("make", [_a_file, _a_folder, _a_link, _nowhere])
def test_what_is_only_called_like_a_recorders_folder_is_left_alone(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    """Programs that are deployed have a `current` and a `previous`, too."""
    make(tmp_path / name)
    before = sorted(tmp_path.rglob("*"))
    for _ in range(2):
        with pytest.raises(OSError, match=f"{name} is not a folder of a flight recorder"):
            take(str(tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    own = tmp_path / "notes.txt"
    own.write_text("dear")
    for _ in range(3):
        current, let_go = take(str(tmp_path))
        (Path(current) / "1.segment").touch()
        let_go()
    assert own.read_text() == "dear"
