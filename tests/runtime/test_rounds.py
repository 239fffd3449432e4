"""Whether rounds of a loop need each other's results, as the program's text says: A9, A20."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pytest

import stageprof
from stageprof_runtime import rounds
from stageprof_runtime.rounds import APART, CARRIED, LONGEST, ROWS, UNKNOWN, handed, verdict
from stageprof_runtime.touched import loads

APART_LOOPS = [
    "values = [f(x).compute() for x in items]",
    "for x in items:\n    values.append(f(x).compute())",
    "for x in items:\n    part = f(x)\n    value = part.compute()\n    total += value",
    "for i, x in enumerate(items):\n    out[i] = f(x).compute()",
    "for x in items:\n    x = f(x)\n    x = x.compute()\n    print(x)",
    "for x in items:\n    if x:\n        out[x] = f(x).compute()\n    else:\n        no += 1",
    "for x in y:\n  try:\n    v = f(x).compute()\n  except OSError:\n    v = 0\n  g(v)",
    "while items:\n    x = items.pop()\n    v = f(x).compute()\n    print(v)",
    "for x in items:\n    total += f(x).compute()",
    "for x in items:\n    if f(x).compute():\n        no += 1",
    "for x in items:\n    v = f(x).compute()\n    if v < 0:\n        continue\n    g(v)",
    "for x in items:\n    if (\n        f(x).compute() < 3\n    ):\n        continue\n    g(x)",
    "for x in items:\n    with open(x) as y:\n        z = f(y)\n        z = z.compute()",
    "for x in items:\n    for y in x:\n        z = f(y)\n        z = z.compute()",
]
CARRIED_LOOPS = [
    "for i in range(9):\n    w = w - step(data, w).compute()",
    "for i in range(9):\n    g = gradient(w).compute()\n    w = w - g",
    "for i in range(9):\n    g = gradient(w).compute()\n    w -= g",
    "for i in range(9):\n    y = w * 2\n    z = (data @ y).compute()\n    w = norm(z)",
    "while error > 1e-3:\n    error = residual(n).compute()\n    n *= 2",
    "for x in items:\n    v = f(x).compute()\n    if v > best:\n        break",
    "for x in items:\n    v = f(x, seen).compute()\n    seen.append(v)",
    "for x in queue:\n    found = f(x).compute()\n    queue.extend(found)",
    "for i in range(9):\n    for x in parts(w):\n        v = f(x).compute()\n    w = w + v",
    "for i in range(9):\n    with of(w) as x:\n        w = f(x).compute()",
    "for x in items:\n    if error > 1e-3:\n        error = f(x).compute()",
    "for x in items:\n    if f(x).compute() > 3:\n        break",
    "for x in items:\n    if f(y).compute():\n        y = x",
    "for x in items:\n    if best < x:\n        continue\n    best = f(x).compute()",
    "for i in range(9):\n    if i == 0:\n        w = first()\n    w = f(w).compute()",
    "for x in y:\n  match x:\n    case 1:\n      w = f(w).compute()",
    "for x in items:\n    w *= f(w).compute()",
]


def line_of(source: str) -> int:
    return next(i for i, text in enumerate(source.splitlines(), 1) if ".compute()" in text)


@pytest.mark.parametrize("source", APART_LOOPS)
def test_rounds_that_need_nothing_of_each_other_are_apart(source: str) -> None:
    assert verdict(source, line_of(source)) == APART


@pytest.mark.parametrize("source", CARRIED_LOOPS)
def test_rounds_that_need_an_earlier_result_are_not(source: str) -> None:
    assert verdict(source, line_of(source)) == CARRIED


def test_a_loop_inside_one_that_carries_is_not_apart() -> None:
    source = "for e in epochs:\n    for x in parts:\n        g = f(x, w).compute()\n    w = w - g"
    assert verdict(source, 3) == CARRIED


@pytest.mark.parametrize(
    "source",
    [
        "value = f(x).compute()",
        "def get(x):\n    return f(x).compute()\nvalues = [get(x) for x in items]",
        "for x in items:\n    this is not Python\n    f(x).compute()",
        "",
        "x.compute()\n" + "#" * LONGEST,
        "(" * 5000,
    ],
)
def test_what_cannot_be_told_is_unknown(source: str) -> None:
    assert verdict(source, 2 if source.startswith("def") else 1) == UNKNOWN


@pytest.mark.parametrize(
    "loop",
    [
        "for row in ddf.itertuples(): total += row.x",
        "for _, row in ddf.iterrows(): total += row.x",
        "for x, y in zip(ddf.x, ddf.x): total += x",
    ],
)
def test_a_loop_through_the_rows_of_a_frame_is_dasks(loop: str) -> None:
    """It computes a partition at a time, whatever the program's text says of the loop."""
    ddf = dd.from_pandas(pd.DataFrame({"x": range(8)}), npartitions=4)

    with dask.config.set(scheduler="sync"), stageprof.profile() as prof:
        exec(compile(f"total = 0\n{loop}", "/rows.py", "exec"), {"ddf": ddf})

    assert [label for _, _, label in prof.recording.timeline.marks("loop")] == [
        f"{ROWS} /rows.py:2"
    ]
    assert not handed


def test_a_recording_has_the_verdict_of_each_line_that_handed_over_several_graphs(
    tmp_path: Path,
) -> None:
    script = tmp_path / "looping.py"
    script.write_text(
        "import dask\n"
        "values = [dask.delayed(abs)(x).compute(scheduler='sync') for x in range(4)]\n"
        "w = 1\n"
        "for _ in range(4):\n"
        "    w = dask.delayed(abs)(w).compute(scheduler='sync')\n"
        "once = dask.delayed(abs)(w).compute(scheduler='sync')\n"
    )

    with stageprof.profile() as prof:
        exec(compile(script.read_text(), str(script), "exec"), {"dask": dask})

    told = [label for _, _, label in prof.recording.timeline.marks("loop")]
    assert sorted(told) == [f"{APART} {script}:2", f"{CARRIED} {script}:5"]
    assert not handed


def test_a_program_is_parsed_once_for_all_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred lines of a long one took seconds of the user's thread."""
    program = tmp_path / "many.py"
    program.write_text("for x in items:\n    f(x).compute()\n" * 50)
    parsed: list[str] = []
    plain = ast.parse

    def parse(source: str) -> Any:
        parsed.append(source)
        return plain(source)

    monkeypatch.setattr(ast, "parse", parse)
    monkeypatch.setattr(
        rounds, "handed", Counter({(str(program), 2 * i + 2): 5 for i in range(50)})
    )
    told = list(rounds.told())
    assert len(told) == 50
    assert {verdict.partition(" ")[0] for verdict in told} == {APART}
    assert len(parsed) == 1


def test_a_long_loop_is_read_in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each statement of it is read once; it took nine seconds."""
    read: list[ast.AST] = []

    def reading(node: ast.AST) -> set[str]:
        read.append(node)
        return loads(node)

    monkeypatch.setattr("stageprof_runtime.rounds.loads", reading)
    lines = ["for x in items:", "    v0 = f(x).compute()"]
    lines += [f"    v{i + 1} = g(v{i})" for i in range(200)]
    assert verdict("\n".join(lines), 2) == APART
    assert len(read) < 2 * len(lines)


def test_where_time_runs_out_nothing_is_known_of_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "many.py"
    program.write_text("for x in items:\n    f(x).compute()\n")
    monkeypatch.setattr(rounds, "PATIENCE_NS", -1)
    monkeypatch.setattr(rounds, "handed", Counter({(str(program), 2): 5}))
    assert list(rounds.told()) == [f"{UNKNOWN} {program}:2"]
