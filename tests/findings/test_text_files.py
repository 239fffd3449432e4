"""The rule text-files: what is parsed in each run could be written once as what it is."""

from __future__ import annotations

from pathlib import Path

import dask.bag as db
import dask.dataframe as dd
import pandas as pd
import pytest

import stageprof
from findings.asking import asked, one, run
from findings.crews import Crewed
from replay.handmade import ns
from stageprof_collectors.findings.finding import Severity
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.text_files import RULE
from stageprof_runtime.event import FLAME, NODE
from stageprof_runtime.stage import STEP

CSV = "/usr/lib/python3/site-packages/pandas/io/parsers/c_parser_wrapper.py"
JSON = "/usr/lib/python3/json/decoder.py"
OTHER = "/usr/lib/python3/site-packages/pandas/core/frame.py"


class Parsing(Crewed):
    """Four tasks of 250 ms one after another, and what they were seen in."""

    def __init__(self, prefix: str = "read-csv") -> None:
        super().__init__(1)
        self._prefix = prefix
        cause = -1 - self.graph(0, 0, 0)
        for i in range(4):
            cause = self.run(0, i * 250, i * 250 + 250, cause=cause, key=(f"{prefix}-{0:032x}", i))
        self.wait_for(0, 1000, (f"{prefix}-{0:032x}", 3))

    def seen(self, file: str, looks: int, *, inner: str = "", name: str = "parse") -> None:
        """Looks saw a function of this file; `inner`: with one of that file within."""
        rows = self._rows[self._workers[0]]
        number = 2 * sum(row[0] == NODE for row in rows)
        rows.append((NODE, number, -1, name, file, 1))
        if inner:
            rows.append((NODE, number + 1, number, "made", inner, 1))
        node = number + bool(inner)
        row = (FLAME, ns(500), STEP["compute"], self._prefix, "library", node, looks, looks * 10**7)
        rows.append(row)

    def over(self) -> Recording:
        return self.recording(1000)


def test_what_parsing_takes_is_told_with_what_parquet_would_save() -> None:
    """75 of 100 looks: 0.75 s, of which between 30 and 98 % would be gone."""
    made = Parsing()
    made.seen(CSV, 50)
    made.seen(CSV, 25, inner=OTHER)
    made.seen(OTHER, 25)
    found = one(RULE, made.over())
    assert found.headline.startswith("Parsing CSV takes 75 % of the time of `read-csv`")
    assert found.cost_s == pytest.approx(0.75, abs=0.01)
    low, high = found.saving_s
    assert (low, high) == pytest.approx((0.3 * 0.68, 0.98 * 0.82), abs=0.02)


@pytest.mark.parametrize(("prefix", "same"), [("read-csv", False), ("price", True)])
def test_functions_of_the_users_may_read_one_file_again_and_again(prefix: str, same: bool) -> None:
    """Dask's own tasks read each piece of each file once."""
    made = Parsing(prefix)
    made.seen(CSV, 100)
    found = one(RULE, made.over())
    assert ("read the same file" in found.fix.text) is same


def test_it_is_moderate_however_much_it_is() -> None:
    """Who reads the files once gains nothing."""
    made = Parsing()
    made.seen(CSV, 100)
    assert one(RULE, made.over()).severity == Severity.MODERATE


@pytest.mark.parametrize(
    ("looks", "others", "fires"), [(9, 0, False), (10, 0, True), (12, 120, False), (30, 120, True)]
)
def test_few_looks_or_a_small_part_are_no_reason(looks: int, others: int, fires: bool) -> None:
    made = Parsing()
    made.seen(CSV, looks)
    if others:
        made.seen(OTHER, others)
    assert bool(asked(RULE, made.over())) is fires


def test_files_of_json_have_code_of_their_own() -> None:
    made = Parsing("read_json")
    made.seen(JSON, 80)
    found = one(RULE, made.over())
    assert "Parsing JSON" in found.headline
    assert "dd.read_json(source, **options)" in found.fix.code


@pytest.mark.parametrize(
    ("file", "name", "told"),
    [
        ("/usr/lib/python3/json/__init__.py", "loads", True),
        ("/usr/lib/python3/json/__init__.py", "dumps", False),
        ("/site-packages/pandas/io/json/_json.py", "JsonReader.read", True),
        ("/site-packages/pandas/io/json/_json.py", "to_json", False),
        ("/site-packages/pandas/io/json/_normalize.py", "json_normalize", False),
    ],
)
def test_writing_json_is_no_parsing_of_files(file: str, name: str, *, told: bool) -> None:
    made = Parsing("dumps")
    made.seen(file, 80, name=name)
    assert bool(asked(RULE, made.over())) is told


@pytest.mark.filterwarnings("ignore:The inplace keyword")
def test_records_of_json_are_written_with_their_types(tmp_path: Path) -> None:
    """A frame that is read of records with lists in them has their texts in their place."""
    made = Parsing("loads")
    made.seen(JSON, 80)
    bag = db.from_sequence([{"x": i, "tags": [i, i]} for i in range(10)], npartitions=2)
    run(one(RULE, made.over()))["convert"](bag, tmp_path / "all", {"x": int})
    assert dd.read_parquet(tmp_path / "all").x.sum().compute() == 45


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask's `to_parquet`
def test_the_printed_code_converts(tmp_path: Path) -> None:
    made = Parsing()
    made.seen(CSV, 100)
    frame = pd.DataFrame({"x": range(10), "name": list("abcdefghij")})
    frame.to_csv(tmp_path / "a.csv", index=False)
    run(one(RULE, made.over()))["convert"](tmp_path / "*.csv", tmp_path / "all")
    assert dd.read_parquet(tmp_path / "all").x.sum().compute() == 45


def test_a_frame_that_is_read_from_csv_is_found(tmp_path: Path) -> None:
    """With Dask's and pandas' own stacks, whatever the tasks are fused with."""
    frame = pd.DataFrame(
        {"x": [n / 7 for n in range(200_000)], "k": [n % 9 for n in range(200_000)]}
    )
    for i in range(4):
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
    with stageprof.profile() as prof:
        for _ in range(20):
            read = dd.read_csv(tmp_path / "*.csv", blocksize=None)
            read.groupby("k").x.mean().compute(scheduler="sync")
    found = one(RULE, prof.recording)
    assert float(found.evidence["share_of_tasks"]) > 0.5
    assert found.where.file == __file__
