"""`stageprof baseline`: what it keeps, what it finds again, and what it never touches."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import stageprof
from baseline.conftest import Make, Run
from faces.conftest import HOSTILE
from stageprof import baseline

BRANCHES = (
    *HOSTILE[:-1],  # the last is too long
    "../../etc/passwd",
    "..",
    "/",
    "nul\x00inside",
    "-rf",
    "feature/`x`|@team",
    "a" * 4000,
)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if not path.is_dir())


def paths(run: Run, *words: str | Path) -> list[str]:
    status, out, _ = run("baseline", "list", *words, "--paths")
    assert status == 0
    return out.splitlines()


def test_what_is_saved_is_found_again_byte_for_byte(make: Make, run: Run, tmp_path: Path) -> None:
    source, folder = make(), tmp_path / "new" / "kept"

    status, out, _ = run("baseline", "save", source, "--dir", folder, "--branch", "main")

    [path] = map(Path, paths(run, folder))
    assert status == 0
    first, last = out.splitlines()
    assert first.split()[:2] == ["kept", baseline.described(source).started[:10]]
    assert first.endswith("  tests/test_etl.py::test_join  (main)")
    assert last == "Kept 1 recording"
    assert path.read_bytes() == source.read_bytes()
    assert path.is_relative_to(folder)


def test_a_folder_is_saved_with_the_folders_in_it(make: Make, run: Run, tmp_path: Path) -> None:
    for number in range(2):
        place = tmp_path / "recordings" / f"test-{number}"
        place.mkdir(parents=True)
        make(label=f"t.py::test_{number}").rename(place / "1.stageprof")

    run("baseline", "save", tmp_path / "recordings", "--dir", tmp_path / "kept", "--branch", "b")

    assert len(paths(run, tmp_path / "kept")) == 2


def test_nothing_is_overwritten_or_kept_twice(make: Make, run: Run, tmp_path: Path) -> None:
    source, folder = make(), tmp_path / "kept"
    run("baseline", "save", source, "--dir", folder, "--branch", "main")
    [path] = map(Path, paths(run, folder))
    path.write_bytes(b"mine")

    status, out, _ = run("baseline", "save", source, "--dir", folder, "--branch", "main")

    assert (status, out.splitlines()[-1]) == (0, "Kept 0 recordings")
    assert path.read_bytes() == b"mine"
    assert len(files(folder)) == 2


@pytest.mark.parametrize("branch", BRANCHES)
def test_a_branch_may_be_called_anything(make: Make, run: Run, tmp_path: Path, branch: str) -> None:
    folder, before = tmp_path / "kept", make()
    outside = files(tmp_path)

    status, out, _ = run("baseline", "save", before, "--dir", folder, "--branch", branch)

    assert status == 0
    assert [name for name in files(tmp_path) if name in outside] == outside
    assert len(files(tmp_path)) == len(outside) + 2
    [path] = map(Path, paths(run, folder, "--branch", branch))
    assert path.relative_to(folder).as_posix().isascii()
    assert " " not in str(path.relative_to(folder))
    _, table, _ = run("baseline", "list", folder)
    assert all(line.isprintable() for line in (out + table).splitlines())
    assert paths(run, folder, "--branch", "another") == []


def test_branches_that_look_alike_are_kept_apart(make: Make, run: Run, tmp_path: Path) -> None:
    for branch in ("a/b", "a-b", "A-b"):
        run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", branch)

    assert len({Path(p).parts[-5] for p in paths(run, tmp_path / "kept")}) == 3


def test_like_finds_the_same_program_on_the_same_machine(
    make: Make, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    mine, other = make(started="2026-01-01T00:00:00+0000"), make(label="t.py::other")
    theirs = make(cpus=96)
    run("baseline", "save", mine, other, theirs, "--dir", folder, "--branch", "main")

    [path] = paths(run, folder, "--like", make(started="2026-02-02T00:00:00+0000"))

    assert Path(path).read_bytes() == mine.read_bytes()


def test_like_falls_back_to_other_machines_and_says_so(
    make: Make, run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    run("baseline", "save", make(cpus=96), "--dir", folder, "--branch", "main")

    status, out, err = run("baseline", "list", folder, "--like", make(), "--paths")

    assert (status, len(out.splitlines())) == (0, 1)
    assert err == (
        "stageprof: none is of this machine and these versions; the newest of others are named\n"
    )


def test_like_names_the_newest_of_other_machines_only(make: Make, run: Run, tmp_path: Path) -> None:
    """Above five thousand tasks of long ago no number of tasks would be worse."""
    folder = tmp_path / "kept"
    days = [f"2026-01-0{day}T00:00:00+0000" for day in range(1, 9)]
    sources = [make(cpus=90 - number, started=day) for number, day in enumerate(days)]
    run("baseline", "save", *sources, "--dir", folder, "--branch", "main")

    named = paths(run, folder, "--like", make())

    assert len(named) == baseline.NEWEST
    assert sources[0].read_bytes() not in {Path(path).read_bytes() for path in named}


def test_prune_can_count_all_machines_together(make: Make, run: Run, tmp_path: Path) -> None:
    """A hosted runner is another machine every time: none had too many, and all were kept."""
    folder = tmp_path / "kept"
    sources = [make(cpus=90 - day, started=f"2026-01-0{day}T00:00:00+0000") for day in range(1, 5)]
    other = make(label="t.py::other", started="2020-01-01T00:00:00+0000")
    run("baseline", "save", *sources, other, "--dir", folder, "--branch", "main")

    apart = run("baseline", "prune", folder, "--keep", "2")
    together = run("baseline", "prune", folder, "--keep", "2", "--together")

    assert apart[1] == "Removed 0 recordings\n"
    assert together[1].endswith("Removed 2 recordings\n")
    left = {Path(path).read_bytes() for path in paths(run, folder)}
    assert left == {path.read_bytes() for path in (*sources[2:], other)}


def test_a_line_number_or_the_way_pytest_was_called_makes_no_other_program(make: Make) -> None:
    labels = {
        baseline.described(make(program=program, label=label)).program
        for program, label in (("pytest", "t.py::test"), ("__main__.py", "t.py::test"))
    }
    blocks = {
        baseline.described(make(program="etl.py", label=f"Block at etl.py:{i}")).program
        for i in (3, 41)
    }

    assert labels == {"t.py::test"}
    assert blocks == {"etl.py, Block at etl.py"}


def test_prune_leaves_the_newest_of_each_series(make: Make, run: Run, tmp_path: Path) -> None:
    """By the instant, whatever the time zone; another program is another series."""
    folder = tmp_path / "kept"
    days = ("2026-03-01T10:00:00+0000", "2026-03-01T11:30:00+0200", "2026-02-01T00:00:00+0000")
    sources = [make(started=day) for day in days]
    other = make(label="t.py::other", started="2020-01-01T00:00:00+0000")
    run("baseline", "save", *sources, other, "--dir", folder, "--branch", "main")

    status, out, _ = run("baseline", "prune", folder, "--keep", "1")

    left = {Path(path).read_bytes() for path in paths(run, folder)}
    assert left == {sources[0].read_bytes(), other.read_bytes()}
    assert status == 0
    lines = out.splitlines()
    assert [line.split("  ")[0] for line in lines[:-1]] == ["removed"] * 2
    assert lines[-1] == "Removed 2 recordings"
    assert len(files(folder)) == 4


def test_a_dry_run_removes_nothing(make: Make, run: Run, tmp_path: Path) -> None:
    run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", "main")
    before = files(tmp_path)

    _, out, _ = run("baseline", "prune", tmp_path / "kept", "--keep", "0", "--dry-run")

    assert out.startswith("would remove  20")
    assert out.endswith("Would remove 1 recording\n")
    assert files(tmp_path) == before


def test_prune_can_be_of_one_branch(make: Make, run: Run, tmp_path: Path) -> None:
    for branch in ("main", "other"):
        run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", branch)

    run("baseline", "prune", tmp_path / "kept", "--keep", "0", "--branch", "other")

    assert len(paths(run, tmp_path / "kept", "--branch", "main")) == 1
    assert len(paths(run, tmp_path / "kept")) == 1


def test_prune_touches_nothing_that_it_did_not_keep(make: Make, run: Run, tmp_path: Path) -> None:
    """A recording without a note, one that was changed since, links, a note that is not ours."""
    folder = tmp_path / "kept"
    run("baseline", "save", make(), make(cpus=3), "--dir", folder, "--branch", "main")
    mine, changed = map(Path, paths(run, folder))
    same = mine.read_bytes()
    changed.write_bytes(b"something else")
    (mine.parent / "loose.stageprof").write_bytes(mine.read_bytes())
    (mine.parent / "forged.stageprof").write_bytes(b"precious")
    (mine.parent / "forged.json").write_bytes(mine.with_suffix(".json").read_bytes())
    link = mine.with_name(f"link-{mine.name}")
    (tmp_path / "same").write_bytes(same)
    link.symlink_to(tmp_path / "same")
    link.with_suffix(".json").write_bytes(mine.with_suffix(".json").read_bytes())
    (tmp_path / "outside").mkdir()
    precious = tmp_path / "outside" / mine.name
    precious.write_bytes(mine.read_bytes())
    precious.with_suffix(".json").write_bytes(mine.with_suffix(".json").read_bytes())
    (folder / "link").symlink_to(tmp_path / "outside")

    _, out, _ = run("baseline", "prune", folder, "--keep", "0")

    assert not mine.exists()
    ours = [changed.name, changed.with_suffix(".json").name]
    theirs = ["forged.json", "forged.stageprof", "loose.stageprof"]
    links = [link.name, link.with_suffix(".json").name]
    assert files(folder) == sorted(ours + theirs + links)
    assert (folder / "link").is_symlink()
    assert precious.exists()
    assert out.count("left, for it was changed since") == 2


def test_an_emptied_baseline_is_an_empty_folder(make: Make, run: Run, tmp_path: Path) -> None:
    run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", "main")
    run("baseline", "prune", tmp_path / "kept", "--keep", "0")

    assert list((tmp_path / "kept").iterdir()) == []
    assert run("baseline", "list", tmp_path / "kept")[:2] == (0, "No recordings are kept here.\n")


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"\xff\xfe",
        b"[" * 90_000,
        b'{"schema": "stageprof.baseline/2"}',
        b'{"schema": "stageprof.baseline/1", "branch": 5}',
        b" " * 200_000,
    ],
)
def test_notes_that_are_not_ours_are_passed_over(
    make: Make, run: Run, tmp_path: Path, note: bytes
) -> None:
    run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", "main")
    [path] = map(Path, paths(run, tmp_path / "kept"))
    path.with_suffix(".json").write_bytes(note)

    assert paths(run, tmp_path / "kept") == []


def test_a_disk_that_is_full_leaves_no_half_of_a_recording(
    make: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(source: Path, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)

    status, out, err = run("baseline", "save", make(), "--dir", tmp_path / "k", "--branch", "b")

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "No space left on device" in err
    assert files(tmp_path / "k") == []


def test_where_there_are_no_links_a_copy_is_renamed(
    make: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    source = make()
    for _ in range(2):
        run("baseline", "save", source, "--dir", tmp_path / "kept", "--branch", "main")

    [path] = map(Path, paths(run, tmp_path / "kept"))
    assert path.read_bytes() == source.read_bytes()
    assert len(files(tmp_path / "kept")) == 2


def test_the_table_counts_recordings_of_each_program(make: Make, run: Run, tmp_path: Path) -> None:
    sources = [make(started=f"2026-01-0{day}T08:00:00+0000") for day in (1, 2)]
    run("baseline", "save", *sources, "--dir", tmp_path / "kept", "--branch", "main")

    _, out, _ = run("baseline", "list", tmp_path / "kept")

    branch, machine, versions, *table = [line.rstrip() for line in out.splitlines()]
    assert branch == "main"
    assert machine.endswith("CPUs")
    assert versions.startswith("python 3.")
    assert table[0].split() == ["recordings", "wall", "newest", "program"]
    number, *_, day, time, program = table[1].split()
    assert (number, day, time) == ("2", "2026-01-02", "08:00")
    assert program == "tests/test_etl.py::test_join"


def test_json_is_ascii_and_has_what_the_documentation_says(
    make: Make, run: Run, tmp_path: Path
) -> None:
    run("baseline", "save", make(), "--dir", tmp_path / "kept", "--branch", "bränch")

    _, out, _ = run("baseline", "list", tmp_path / "kept", "--json")

    assert out.isascii()
    whole = json.loads(out)
    [entry] = whole.pop("recordings")
    assert whole == {"schema": "stageprof.baseline/1"}
    assert set(entry) == {
        "path", "branch", "program", "machine", "versions", "started", "wall_s",
    }  # fmt: skip
    assert entry["branch"] == "bränch"


def test_ci_or_git_says_which_branch(
    make: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"):
        monkeypatch.delenv(name, raising=False)
    status, _, err = run("baseline", "save", make(), "--dir", "kept")
    assert (status, err) == (2, "stageprof: git names no branch here; expected --branch B\n")

    monkeypatch.setenv("CI_COMMIT_REF_NAME", "from-ci")
    _, out, _ = run("baseline", "save", make(), "--dir", "kept")
    assert out.splitlines()[0].endswith("(from-ci)")


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder."""
    folder = tmp_path / "empty"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["save", "nothing", "--dir", "k", "--branch", "b"], "no file nothing"),
        (["save", ".", "--dir", "k", "--branch", "b"], ". holds no *.stageprof file"),
        (["save", __file__, "--dir", "k", "--branch", "b"], "test_baseline.py"),
        (["save", "{made}", "--dir", "k", "--branch", ""], "a branch of 0 characters"),
        (["save", "{made}", "--dir", __file__, "--branch", "b"], "cannot be kept"),
        (["list", "nowhere"], "no folder nowhere"),
        (["list", __file__], "no folder"),
        (["list", ".", "--paths", "--json"], "both --paths and --json"),
        (["list", ".", "--like", "nothing"], "no file nothing"),
        (["prune", "."], "Missing option '--keep'"),
        (["prune", ".", "--keep", "-1"], "-1 is not in the range"),
        ([], "Missing command"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    make: Make, run: Run, empty: Path, words: list[str], said: str
) -> None:
    source = str(make())

    status, out, err = run("baseline", *(word.replace("{made}", source) for word in words))

    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def failing(path: Path, error: BaseException) -> Path:
    with suppress(type(error)), stageprof.profile(path, label="t.py::fails", gil=False):
        raise error
    return path


def test_what_failed_is_not_kept_and_named(make: Make, run: Run, tmp_path: Path) -> None:
    """It stopped early: all that is compared with it would be slower."""
    bad = failing(tmp_path / "bad.stageprof", ValueError("no"))
    keep = ("--dir", tmp_path / "kept", "--branch", "main")

    some = run("baseline", "save", make(), bad, *keep)
    none = run("baseline", "save", bad, *keep)

    assert (some[0], some[1].splitlines()[-1]) == (0, "Kept 1 recording")
    assert some[2] == f"stageprof: not kept: {bad}: the block ended with ValueError\n"
    assert none[0] == 2
    assert "no recording is of a run that ended well" in none[2]
    assert paths(run, tmp_path / "kept", "--like", bad) == []


def test_a_program_that_exits_with_0_ended_well(run: Run, tmp_path: Path) -> None:
    good = failing(tmp_path / "good.stageprof", SystemExit(0))
    done = run("baseline", "save", good, "--dir", tmp_path / "kept", "--branch", "main")
    assert (done[0], done[2]) == (0, "")


def test_an_incomplete_recording_is_refused(make: Make, run: Run, tmp_path: Path) -> None:
    source = make()
    source.write_bytes(source.read_bytes()[:-30])

    status, _, err = run("baseline", "save", source, "--dir", tmp_path / "kept", "--branch", "main")

    assert (status, err.count("\n")) == (2, 1)
    assert "is incomplete" in err
    assert not (tmp_path / "kept").exists()


def test_files_of_names_that_save_does_not_give_are_not_of_the_baseline(
    make: Make, run: Run, tmp_path: Path
) -> None:
    """A cache may hold anything, and shells make words of what is listed."""
    folder = tmp_path / "kept"
    run("baseline", "save", make(), "--dir", folder, "--branch", "main")
    [good] = map(Path, paths(run, folder))
    for name in ("a --html=b", "-x", "a\nb", "\x1b]0;x\a", "a;b", "$(b)"):
        place = good.with_name(f"{name}{good.suffix}")
        shutil.copy(good, place)
        shutil.copy(good.with_suffix(".json"), place.with_suffix(".json"))
    shutil.copytree(good.parent, good.parent.parent / "a --html=b")

    assert paths(run, folder) == [str(good)]
