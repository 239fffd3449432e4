"""Results that went from worker to worker: from whom, to whom, bytes and seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from stageprof_collectors.findings.quantity import count, seconds, size
from stageprof_collectors.recording import Recording
from stageprof_runtime.stage import STEP
from stageprof_ui.columns.series import natural, processes, worker_label

#: Workers of a picture; the names of more cannot be read.
MATRIX: Final = 30


@dataclass(frozen=True)
class Matrix:
    """The pairs among the workers with most bytes.

    Attributes:
        names: of the workers, in the order of rows and columns.
        cells: x (receiver) and y (sender) as numbers of names, bytes, seconds, fetches; the
            parts of the highest, `bytes_part` and `seconds_part`; names of both.
        left_out: workers with transfers that are not among them.
    """

    names: list[str]
    cells: pd.DataFrame
    left_out: int


def pairs(recording: Recording, names: dict[str, str]) -> pd.DataFrame:
    """One row per pair: from, to, bytes, seconds (of fetches, which overlap), fetches.

    `names` are those of workers by their addresses.
    """
    spans, store = recording.timeline.spans, recording.store
    rows = np.flatnonzero(spans["step"] == STEP["data.transfer"])
    code = spans["label"][rows] * len(store.places) + spans["place"][rows]
    different, of = np.unique(code, return_inverse=True)
    length = (spans["stop"] - spans["start"])[rows] / 1e9
    label, place = np.divmod(different, max(len(store.places), 1))
    frame = pd.DataFrame(
        {
            "from": [store.strings[i] for i in label.tolist()],
            "to": [store.places[i].name for i in place.tolist()],
            "bytes": _sums(of, np.maximum(spans["nbytes"][rows], 0), len(different)),
            "seconds": _sums(of, length, len(different)),
            "fetches": np.bincount(of, minlength=len(different)),
        }
    )
    shown = _shown({*frame["from"], *frame["to"]}, recording, names)
    frame = frame.assign(**{end: [shown[a] for a in frame[end]] for end in ("from", "to")})
    frame = frame.groupby(["from", "to"], as_index=False)[["bytes", "seconds", "fetches"]].sum()
    return frame.sort_values("bytes", ascending=False, ignore_index=True)


def _shown(addresses: set[str], recording: Recording, names: dict[str, str]) -> dict[str, str]:
    """What workers are called; those seen as on the rest of the page, where no two are alike."""
    found = {address: worker_label(address, names) for address in addresses}
    seen = zip(recording.store.places, processes(recording, names), strict=True)
    for place, process in reversed([*seen]):  # of lives at one address the first
        if place.role == "worker" and place.name in found:
            found[place.name] = process.label
    return found


def _sums(of: Any, weights: Any, n: int) -> Any:
    return np.bincount(of, weights=weights, minlength=n)


def matrix(found: pd.DataFrame, most: int = MATRIX) -> Matrix:
    """The picture of the pairs."""
    ends = pd.concat([found["from"], found["to"]], ignore_index=True)
    weights = pd.concat([found["bytes"], found["bytes"]], ignore_index=True)
    total = weights.groupby(ends).sum().sort_values(ascending=False, kind="stable")
    names = sorted(map(str, total.index[:most]), key=natural)
    number = {name: i for i, name in enumerate(names)}
    cells = found[found["from"].isin(names) & found["to"].isin(names)].reset_index(drop=True)
    cells = cells.assign(x=cells["to"].map(number), y=cells["from"].map(number))
    for name in ("bytes", "seconds"):
        cells[f"{name}_part"] = cells[name] / max(float(cells[name].max() or 0), 1e-12)
    return Matrix(names, cells, len(total) - len(names))


def of_transfers(found: pd.DataFrame) -> str:
    """What went from worker to worker, in a sentence."""
    nbytes, took = float(found["bytes"].sum()), float(found["seconds"].sum())
    first = found.iloc[0]
    return (
        f"{size(nbytes)} in {count(int(found['fetches'].sum()), 'fetch')} that took "
        f"{seconds(took)} together; they overlap. Most went from {first['from']} to "
        f"{first['to']}: {size(float(first['bytes']))} in {seconds(float(first['seconds']))}."
    ).replace("fetchs", "fetches")
