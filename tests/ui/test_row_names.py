"""What rows of a picture are called where there is no room for all of it."""

from __future__ import annotations

from pathlib import Path

from stageprof.app import written
from ui.conftest import Watched
from ui.observed import Observed


def test_a_long_name_keeps_the_end_by_which_rows_differ(watched: Watched, tmp_path: Path) -> None:
    made = Observed(2)
    graph = -1 - made.graph(0, 0, 0)
    for worker in range(2):
        made.named(worker, f"dask-of-somebody-😀-default-worker-{worker}")
        made.run(worker, 5, 8, cause=graph)
    written(made.recording(10), tmp_path / "long.html")
    page = watched.open(f"{(tmp_path / 'long.html').as_uri()}#timeline")
    names = page.wait_for_function(
        """() => Object.values(stageprof.apps).flatMap((app) => Object.values(app.drawings))
          .map(({ figure }) => [...figure.left[0].major_label_overrides.values()])
          .find((names) => names.some((name) => name.includes("thread")))"""
    ).json_value()
    assert names == [f"…body-😀-default-worker-{worker}, thread 1" for worker in range(2)]
