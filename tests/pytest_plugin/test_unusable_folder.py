"""A folder in which nothing can be kept is no reason for a test to fail."""

from __future__ import annotations

from pathlib import Path

from stageprof.testing.recorder import Recorder


def test_a_block_is_recorded_in_memory_where_it_cannot_be_kept(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    folder.write_text("a file lies in its place")
    recorder = Recorder("test_etl", folder)
    with recorder("join") as region:
        pass
    assert region.recording.path is None
    assert recorder.unkept.startswith("nothing was kept (")
