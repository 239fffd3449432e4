"""A redacted recording holds the same numbers and none of the user's names."""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from dask import delayed

import stageprof
from stageprof.cli import main
from stageprof_collectors.privacy.pseudonym import Pseudonyms
from stageprof_collectors.privacy.redaction import Redaction, redact
from stageprof_collectors.privacy.vocabulary import vocabulary
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import Writer, read_frames
from stageprof_collectors.storage.merge import merge
from stageprof_runtime.batch import Row, pack
from stageprof_runtime.event import FIELDS, KEYS, MARK, TABLES, TEXT, UNUSED, Place
from stageprof_runtime.loaded import STORED

GOLDEN = sorted((Path(__file__).parents[1] / "data").glob("*.stageprof"))

#: What nobody but the user knows; all of them are in the file before.
SECRETS = (
    "acmecorp", "mallory", "hunter2", "salaries", "qz17", "merger", "4711471", "10.20.30.40",
    "db01.intern", "zürich",
)  # fmt: skip

#: Texts as they occur, each with secrets in it.
TEXTS = (
    "salaries-0123456789abcdef0123456789abcdef",
    "/home/mallory/acmecorp/salaries.py",
    "/home/mallory/acmecorp/salaries.py:12 salaries.<locals>.merger",
    "tcp://10.20.30.40:8786",
    "tls://db01.intern.acmecorp:8786",
    "merger with acmecorp: postgres://mallory:hunter2@db01.intern/zürich",
    "customer-4711471",
    "qz17_zürich",
    "C:\\Users\\mallory\\salaries.py",
    "argument 2 of salaries",
    "mallory \udcff",
)

#: Labels of marks as the runtime makes them.
LABELS = {
    "region start": "140000000000000 140000000000000",
    "worker seen": "tcp://10.20.30.40:40001 2 4000000000 salaries 4711471",
    "worker name": "salaries 4711471",
    "one by one": "missing 365 5 /home/mallory/acmecorp/salaries.py:12",
    "not instrumented": "tcp://10.20.30.40:40001 KeyError: 'hunter2'",
    "worker lost": "tls://db01.intern.acmecorp:8786 1 2 0",
    "not drained": "tcp://10.20.30.40:40001",
    "cluster lost": "OSError: no route to db01.intern",
    "cluster not joined": "OSError: hunter2",
    "hook disabled": "salaries.merger: ValueError('hunter2')",
    "task failed": "MergerError\tsalaries\t/home/mallory/acmecorp/salaries.py:3",
    "region raised": "program\tMergerError\t3",
    "thread": "140 mallory",
    "waits since": "140 merger_of_salaries",
    "loop": "apart /home/mallory/acmecorp/salaries.py:7",
    "cell": "3 /tmp/ipykernel_4711471/qz17.py",
    "objects not examined": "merger",
    "held up": "140000000000000\tsalaries\t/home/mallory/acmecorp/salaries.py:3 Lock('merger')",
    "no worker fits": "salaries\tMERGER=1, MEMORY=1e+11\ttcp://10.20.30.40:40001",
    "something newer": "mallory 4711471",
}


def rows() -> Iterator[Row]:
    """Rows of every table, with every text in every field that holds one, and in every key."""
    for (number, fields), text in itertools.product(FIELDS.items(), TEXTS):
        yield (number, *(_value(field, text) for field in fields))
    for name, label in LABELS.items():
        yield (MARK, 7, name, label)


def _value(field: str, text: str) -> Any:
    if field in KEYS:
        return (text, 0, (text.encode("utf-8", "surrogatepass"), 1))
    return text if field in TEXT else 1


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with secrets in every place that a text can be in."""
    path = tmp_path_factory.mktemp("planted") / "salaries.stageprof"
    header = {
        "label": "Block at salaries.py:3", "program": "salaries.py", "python": "3.11.7",
        "whole": True, "flight": {"address": "tcp://10.20.30.40:8786", "dropped": {"hunter2": 3}},
    }  # fmt: skip
    places = [
        Place("client", "db01.intern", 1, "client", 1),
        Place("worker", "mallory-laptop", 2, "tcp://10.20.30.40:40001", 1),
    ]
    drops, cost = {"hook failed: salaries": 1}, {"merger": [1, 2]}
    batches = [pack(p, 0, 9, rows(), drops=drops, cost=cost) for p in places]
    with Writer(path, header) as writer:
        writer.write(*merge(batches))
        writer.close({"dropped": {"mallory": 1}})
    assert set(found(path)) == set(SECRETS)
    return path


def content(path: Path) -> bytes:
    """All that a file holds, decompressed."""
    frames = read_frames(path)
    held = b"\n".join(each.raw for each in frames)
    return held + str(frames.path.name).encode()


def found(path: Path) -> list[str]:
    text = content(path).decode("utf-8", "replace").casefold()
    return [secret for secret in SECRETS if secret in text]


def measured(path: Path) -> dict[str, Any]:
    """The numbers of a recording and what was found in it."""
    recording = Recording.open(path)
    tables = (
        "stages", "steps", "places", "critical_path", "tasks", "layers", "objects", "samples",
        "gil",
    )  # fmt: skip
    return {
        "numbers": [numbers(getattr(recording, table)()) for table in tables],
        "findings": [
            (f.rule, f.severity, f.cost_s, f.saving_s, f.where.line) for f in recording.findings()
        ],
        "events": recording.coverage()["events"],
        "overhead": recording.coverage()["overhead_s"],
        "complete": recording.complete,
    }


def numbers(table: pd.DataFrame) -> list[Any]:
    """Rows in any order that names may have given them."""
    kept = table.select_dtypes(["number", "bool"]).drop(columns="thread", errors="ignore")
    return sorted(map(repr, kept.itertuples(index=False)))


@pytest.mark.smoke
def test_no_secret_is_left_in_any_frame(planted: Path, tmp_path: Path) -> None:
    redact(planted, tmp_path / "r.stageprof")

    assert found(tmp_path / "r.stageprof") == []


def test_as_many_rows_and_keys_are_there(planted: Path, tmp_path: Path) -> None:
    redact(planted, tmp_path / "r.stageprof")

    old, new = (Recording.open(p).store for p in (planted, tmp_path / "r.stageprof"))
    assert [new.rows(t) for t in TABLES.values()] == [old.rows(t) for t in TABLES.values()]
    assert len(set(new.keys(range(new.rows("assign"))))) == len(TEXTS)
    assert [p.role for p in new.places] == [p.role for p in old.places]
    assert new.complete
    assert new.header["python"] == "3.11.7"
    assert new.header["redacted"] is True
    assert new.header["whole"] is True


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_released_recording_has_the_same_numbers_in_every_column(
    path: Path, tmp_path: Path
) -> None:
    redact(path, tmp_path / "r.stageprof")

    old, new = (Recording.open(p) for p in (path, tmp_path / "r.stageprof"))
    for name, fields in ((TABLES[number], fields) for number, fields in FIELDS.items()):
        for field in (*(f for f in fields if f not in TEXT), "place"):
            was, now = old.store.table(name)[field], new.store.table(name)[field]
            np.testing.assert_array_equal(now, was)
    assert new.stages().to_dict() == old.stages().to_dict()
    assert new.coverage()["batches_lost"] == old.coverage()["batches_lost"]


def salaries_of_zurich(x: Any) -> Any:
    return x + 1


def merger_fails(x: Any) -> Any:
    raise ValueError("hunter2")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with secrets in keys, functions, columns, variables and an exception."""
    path = tmp_path_factory.mktemp("mallory") / "acmecorp.stageprof"
    qz17 = da.ones((400, 400), chunks=100)
    frame = pd.DataFrame({"salaries": range(2000), "qz17": ["acmecorp"] * 2000})
    with dask.config.set(scheduler="threads"), stageprof.profile(path, label="for mallory"):
        qz17.map_blocks(salaries_of_zurich).sum().compute()
        delayed(salaries_of_zurich)(1, dask_key_name="customer-4711471-mallory").compute()
        delayed(frame.assign, name="acmecorp")(merger=1).compute()
        with pytest.raises(ValueError, match="hunter2"):
            delayed(merger_fails)(1).compute()
    return path


@pytest.mark.smoke
def test_a_real_recording_measures_the_same_and_names_nothing(
    recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "r.stageprof"
    redact(recorded, copy)

    assert {"mallory", "salaries", "4711471", "acmecorp"} <= set(found(recorded))
    assert found(copy) == []
    assert b"test_redaction" not in content(copy)
    assert str(Path(__file__).parents[2]).encode() not in content(copy)
    assert measured(copy) == measured(recorded)


def test_what_a_recording_never_holds(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what an exception said, nor values, nor the environment; redacted or not."""
    held = content(recorded)

    assert b"hunter2" not in held
    assert b"return x + 1" not in held
    for name in ("PATH", "HOME"):
        assert name.encode() + b"=" not in held


def test_the_same_thing_has_the_same_name_throughout() -> None:
    names = Pseudonyms(vocabulary())

    key = names.text("('salaries-0123456789abcdef0123456789abcdef', 3)")
    layer = names.text("salaries-0123456789abcdef0123456789abcdef")
    file = names.text("/home/mallory/salaries.py")

    assert key == f"('{layer}', 3)"
    assert layer.startswith(names.text("salaries") + "-")
    assert names.text("apart /home/mallory/salaries.py:7") == f"apart {file}:7"
    assert names.text("tcp://10.20.30.40:1") != names.text("tcp://10.20.30.41:1")


def test_different_names_stay_different() -> None:
    names = Pseudonyms(vocabulary())
    texts = [f"{begin}{i}{end}" for begin in ("own", "Own_", "9") for i in range(500)
             for end in ("", "a", "_b", "-c")]  # fmt: skip

    assert len({names.text(text) for text in texts}) == len(texts)


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/srv/shared/Max Merge Smith/sum/x.py", "x.py"),
        ("C:\\Users\\Max Merge\\sum\\x.py:3 apply", "x.py:3 apply"),
        ("/data/q1:merge/sum/x.py", "x.py"),
        ("merge/sum/x.py", "x.py"),
        ("apart merge/sum/x.py:7", "x.py:7"),
        ("/home/O'merge/sum/x.py", "x.py"),
        ("//server//merge//sum//x.py", "x.py"),
        ("\\\\server\\merge\\sum\\x.py", "x.py"),
        ("s3://bucket/merge/sum/x.py", "x.py"),
    ],
)
def test_no_word_of_a_folder_stays(path: str, kept: str) -> None:
    """Whatever stands in its name: blanks, colons, quotes; from the root or not."""
    said = Pseudonyms({"merge", "sum", "x", "py", "apply", "apart"}).text(path)
    assert not {"merge", "sum", "smith", "server", "bucket"} & set(re.split(r"\W+", said.lower()))
    assert said.endswith(kept)


def test_an_address_before_a_path_is_one() -> None:
    said = Pseudonyms({"tcp", "inproc"}).text("tcp://10.20.30.40:8786 5 2 /home/a/x.py:1")
    assert said.startswith("tcp://host-1:8786 5 2 /home/")
    assert "10.20" not in Pseudonyms({"inproc"}).text("inproc://10.20.30.40/1234/1")


def test_of_numbers_in_keys_only_those_of_blocks_stay() -> None:
    """A number may be a customer's, and two that are a place."""
    key: Callable[[object], Any] = Redaction()._key
    whole, place = key(4711471), key(("lat", 48.20849, -4711471))[1:]
    assert (type(whole), len(str(whole))) == (int, 7)
    assert whole != 4711471
    assert [type(each) for each in place] == [float, int]
    assert place[0] != 48.20849
    assert place[1] == -whole
    assert key(("sum", 99_999, True)) == ["sum", 99_999, True]
    assert key("customer-4711471").endswith(f"-{whole}")


def test_different_whole_numbers_stay_different() -> None:
    names = Pseudonyms(())
    numbers = [*range(99_000, 101_000), *range(999_000, 1_001_000), 2**63, 2**64 - 1, -(2**63)]
    assert len({names.number(number) for number in numbers}) == len(numbers)
    assert max(map(names.number, numbers)) < 2**64


@pytest.mark.parametrize(
    "text",
    ["read_parquet-fused-sum", "shuffle-transfer", "rechunk-merge", "getitem", "pandas.DataFrame",
     "chunk_sum", "bincount_agg-partial", "finalize-hlgfinalizecompute"],
)  # fmt: skip
def test_names_that_dask_gives_stay(text: str) -> None:
    assert Pseudonyms(vocabulary()).text(text) == text


def test_an_unfinished_recording_stays_unfinished(recorded: Path, tmp_path: Path) -> None:
    cut, copy = tmp_path / "cut.stageprof", tmp_path / "r.stageprof"
    cut.write_bytes(recorded.read_bytes()[:-20])
    redact(cut, copy)

    assert not Recording.open(copy).complete
    assert measured(copy) == measured(cut)


def test_the_command_writes_a_recording_that_is_checked_whole(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.stageprof"

    assert main(["export", str(recorded), "--redact", "-o", str(out)]) == 0
    assert found(out) == []
    assert main(["export", str(recorded), "-o", str(out)]) == 2
    assert "--redact" in capsys.readouterr().err


def test_every_export_can_be_redacted(recorded: Path, tmp_path: Path) -> None:
    for form in ("csv", "parquet", "perfetto"):
        out = tmp_path / form
        assert main(["export", str(recorded), "--to", form, "--redact", "-o", str(out)]) == 0
        files = [p for p in out.rglob("*") if p.is_file()] if out.is_dir() else [out]
        text = b"".join(p.read_bytes() for p in files).decode("utf-8", "replace")
        names = " ".join(str(p.relative_to(tmp_path)) for p in files)
        assert [s for s in SECRETS if s in (text + names).casefold()] == []


def test_nor_does_a_redacted_report_name_anything(planted: Path, recorded: Path) -> None:
    for path in (planted, recorded):
        page = path.with_suffix(".html")
        assert main(["report", str(path), "--redact", "-o", str(page)]) == 0
        text = page.read_text()
        assert [s for s in SECRETS if s in text.casefold()] == []
        assert f"{tempfile.gettempdir()}/stageprof-" not in text


def test_redacting_never_replaces_the_recording_itself(recorded: Path) -> None:
    before = recorded.read_bytes()
    assert main(["export", str(recorded), "--redact", "--force", "-o", str(recorded)]) == 2
    assert recorded.read_bytes() == before


def test_a_damaged_header_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.stageprof"
    head = frame.file_head(b"[]")
    path.write_bytes(head + frame.encode(head, 0, frame.META, b"[]"))

    assert main(["export", str(path), "--redact", "-o", str(tmp_path / "o")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_copy_of_more_batches_than_a_sound_recording_has_is_broken_off(tmp_path: Path) -> None:
    """A file of some kilobytes held millions of nothing, each of which was looked at."""
    batch = pack(Place("client", "h", 1, "c", 1), 0, 9, [])
    raw = frame.join([batch]) + bytes(4 << 20)
    head, meta = frame.file_head(b"{}"), b"{}"
    (tmp_path / "a").write_bytes(
        head + frame.encode(head, 0, frame.META, meta) + frame.encode(head, 1, frame.BATCH, raw)
    )
    redact(tmp_path / "a", tmp_path / "b")
    copy = Recording.open(tmp_path / "b").store
    assert (copy.batches, copy.complete) == (1, False)

    redaction = Redaction(10)
    found = frame.Frame(frame.BATCH, 0, 0, frame.join([batch] * 10))
    assert (len(list(redaction.batches(found))), redaction.full) == (10, False)
    assert (len(list(redaction.batches(found))), redaction.full) == (0, True)


@pytest.mark.parametrize(
    ("how", "label", "kept"),
    [
        (STORED, "400x400 40x400 400x40", True),  # an array's, of which a rule makes chunks
        (STORED, "salaries", False),
        ("columns", "4711471", False),  # a column's name is the user's, whatever it is
    ],
)
def test_of_what_was_not_used_shapes_stay_and_columns_do_not(
    how: str, label: str, *, kept: bool, tmp_path: Path
) -> None:
    row = (UNUSED, 7, "read", how, label, "x", 1, 2)
    with Writer(tmp_path / "a", {}) as writer:
        writer.write(pack(Place("client", "h", 1, "c", 1), 0, 9, [row]))
    redact(tmp_path / "a", tmp_path / "b")
    store = Recording.open(tmp_path / "b").store
    (said,) = (store.strings[i] for i in store.table("unused")["label"].tolist())
    assert (said == label) is kept
