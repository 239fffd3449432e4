"""Recordings that somebody else made, or spoiled: never a crash, a hang or a silent difference.

Run as a script, this file is the child that opens spoiled recordings under limits on memory and
time: ``test_hostile.py KIND GOOD SEED COUNT``. It dies of SIGALRM where opening takes over 5 s,
so that a signal of any kind shows in the exit status.
"""

from __future__ import annotations

import ast
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import msgpack
import numpy as np
import pytest

from benchmarks.generate import generate
from stageprof_collectors.recording import Recording
from stageprof_collectors.storage import frame
from stageprof_collectors.storage.file import read_frames
from stageprof_collectors.storage.inspection import dump
from stageprof_collectors.storage.key import text_of_key
from stageprof_collectors.storage.store import Store
from stageprof_collectors.tables.cells import rename
from stageprof_collectors.tables.crew import Crew
from stageprof_collectors.tables.lines import UNKNOWN, Lines
from stageprof_runtime.batch import pack
from stageprof_runtime.errors import StageprofError
from stageprof_runtime.event import LINE, MARK, TABLES, WANT, Place

DATA: Final = Path(__file__).parents[1] / "data"
GOLDEN: Final = DATA / "golden-1.0.stageprof"
GOLDENS: Final = tuple(sorted(DATA.glob("golden-*.stageprof")))
ROOT: Final = Path(__file__).parents[2]

#: Mutations of each kind every time, and by night.
MUTATIONS: Final = 1_000
BY_NIGHT: Final = 10_000
CHUNK: Final = 500

LIMIT_S: Final = 5
#: Seconds of processor time that a bomb may take; what else the machine does is not its fault.
BOMB_S: Final = 2
ADDRESS_SPACE: Final = 1 << 30
RESIDENT_MIB: Final = 512
#: What the child gives the store, well below what the process may have.
MAX_MEMORY: Final = 200 << 20

EDGES: Final = (0, 1, 2**7, 2**8 - 1, 2**15, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)

# -- spoiling a file ----------------------------------------------------------------------


def bit_flip(data: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 3, 20))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def edge_value(data: bytearray, rng: random.Random) -> bytes:
    width = rng.choice((1, 2, 4, 8))
    at = rng.randrange(len(data) - width)
    data[at : at + width] = (rng.choice(EDGES) % 2 ** (8 * width)).to_bytes(width, "little")
    return bytes(data)


def truncation(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data[: rng.randrange(len(data))])


def growth(data: bytearray, rng: random.Random) -> bytes:
    return bytes(data) + rng.randbytes(rng.randrange(1, 40))


def frames_shuffled(data: bytearray, rng: random.Random) -> bytes:
    parts = list(_parts(data))
    a, b = rng.randrange(1, len(parts)), rng.randrange(1, len(parts))
    change = rng.randrange(3)
    if change == 0:
        parts[a], parts[b] = parts[b], parts[a]
    elif change == 1:
        parts.insert(a, parts[b])
    else:
        del parts[a]
    return b"".join(parts)


def length_lie(data: bytearray, rng: random.Random) -> bytes:
    parts = list(_parts(data))
    at = rng.randrange(1, len(parts))
    head = list(frame.FRAME_HEAD.unpack_from(parts[at]))
    head[rng.choice((1, 2))] = rng.choice(EDGES) % 2**32
    parts[at] = frame.FRAME_HEAD.pack(*head) + parts[at][frame.FRAME_HEAD.size :]
    return b"".join(parts)


def _parts(data: bytes | bytearray) -> Iterator[bytes]:
    """The head of a sound file, then its frames."""
    yield bytes(data[: frame.FILE_HEAD.size])
    at = frame.FILE_HEAD.size
    while at < len(data):
        end = at + frame.FRAME_HEAD.size + frame.FRAME_HEAD.unpack_from(data, at)[1]
        yield bytes(data[at:end])
        at = end


SPOILERS: Final[tuple[Callable[[bytearray, random.Random], bytes], ...]] = (
    bit_flip, edge_value, truncation, growth, frames_shuffled, length_lie,
)  # fmt: skip


def resealed(contents: list[tuple[int, bytes]]) -> bytes:
    """A file of these frames whose checksums are all right, as a liar would make it."""
    head = frame.file_head(contents[0][1])
    return head + b"".join(frame.encode(head, n, *content) for n, content in enumerate(contents))


def forged(data: bytes, rng: random.Random) -> bytes:
    """The recording with some batch spoiled inside a frame that passes its checksum."""
    contents = []
    for part in list(_parts(data))[1:]:
        kind, _, raw_length, _ = frame.FRAME_HEAD.unpack_from(part)
        contents.append((kind, frame.decompress(part[frame.FRAME_HEAD.size :], raw_length)))
    at = rng.randrange(len(contents))
    spoil = rng.choice((bit_flip, edge_value, truncation, growth))
    kind, raw = contents[at]
    batches = [bytes(b) for b in frame.split(raw)] if kind == frame.BATCH else []
    if batches and rng.random() < 0.9:
        batches[0] = spoil(bytearray(batches[0]), rng)
        contents[at] = kind, frame.join(batches)
    else:
        contents[at] = kind, spoil(bytearray(raw), rng)
    return resealed(contents)


# -- the child ----------------------------------------------------------------------------

Content = dict[str, Any]


def content(store: Store) -> Content:
    """All that a store says."""
    tables = {
        f"{name}.{field}": column
        for name in TABLES.values()
        for field, column in store.table(name).items()
    }
    texts = {"strings": store.strings, "places": store.places}
    count = sum(store.rows(name) for name in ("assign", "want", "arrive", "block"))
    keys = {"keys": store.keys(range(count))}
    return {**tables, **texts, **keys}


def is_silently_different(store: Store, good: Content) -> bool:
    """Whether it says something else than the original without saying that it does.

    An incomplete store must hold the beginning of the original, a complete one all of it. Where
    frames are left out in the middle, `good` is what those that are left say.
    """
    found = content(store)
    if store.complete:
        return any(len(found[name]) != len(good[name]) for name in good) or _differs(found, good)
    return not store.incomplete_reason or _differs(found, good)


def _differs(found: Content, good: Content) -> bool:
    return any(
        not np.array_equal(v, good[name][: len(v)], equal_nan=name == "sample.value")
        for name, v in found.items()
    )


Numbered = dict[int, tuple[int, bytes]]


def numbered(path: Path) -> Numbered:
    """The frames of a recording by their numbers; they come in that order, and none twice."""
    found: Numbered = {}
    with read_frames(path, max_memory=MAX_MEMORY) as frames:
        for each in frames:
            assert max(found, default=-1) < frames.number - 1
            found[frames.number - 1] = each.type, each.raw
        assert frames.complete or frames.reason
        assert not (frames.complete and frames.missing)
    return found


def try_spoiled(path: Path, good: Content, whole: Numbered) -> bool:
    """Open it; whether it was silently different."""
    with alarm():
        try:
            store, found = Store.open(path, max_memory=MAX_MEMORY), numbered(path)
        except StageprofError:
            return False
    if any(whole.get(number) != each for number, each in found.items()):
        return True
    if list(found) != list(range(len(found))):  # some are missing
        assert store.skipped["damaged frame"]
        good = content(left(found))
        return store.complete or is_silently_different(store, good)
    return is_silently_different(store, good)


def left(found: Numbered) -> Store:
    """What is known by some frames of a recording."""
    store = Store()
    for kind, raw in found.values():
        for each in frame.split(raw) if kind == frame.BATCH else ():
            store.add(each)
    return store


def try_forged(path: Path) -> None:
    """Open it and read all of it: what it says is the liar's, but it must not hurt."""
    for read in (_read_columns, _read_text):
        with alarm(), suppress(StageprofError):
            read(path)


def try_bomb(path: Path) -> None:
    """The same with the limits that hold unless others are given; says what each took.

    Texts of a million keys are no part of opening: who wants all of them may wait.
    """
    for read, seconds in ((_open, BOMB_S), (_read_columns, LIMIT_S), (_read_text, BOMB_S)):
        begun = time.process_time()
        with alarm(signal.ITIMER_PROF, seconds), suppress(StageprofError):
            read(path, None)
        sys.stdout.write(f"{read.__name__} {time.process_time() - begun:.2f} s\n")
        sys.stdout.flush()


def try_judged(path: Path) -> None:
    """Let the command line make of it what it can: findings, a summary, JSON."""
    from stageprof.reading import reading
    from stageprof.renderers import document, terminal

    with alarm(), suppress(StageprofError), reading(str(path)) as recording:
        terminal.text(recording.summary)
        document.text(recording)


def _open(path: Path, max_memory: int | None) -> None:
    store = Store.open(path, max_memory=max_memory)
    for name in TABLES.values():
        store.table(name)


def _read_columns(path: Path, max_memory: int | None = MAX_MEMORY) -> None:
    content(Store.open(path, max_memory=max_memory))


def _read_text(path: Path, max_memory: int | None = MAX_MEMORY) -> None:
    for _ in dump(path, max_memory=max_memory):
        pass


@contextmanager
def alarm(timer: int = signal.ITIMER_REAL, seconds: float = LIMIT_S) -> Iterator[None]:
    """Let a signal end the process if this takes too long."""
    signal.setitimer(timer, seconds)
    yield
    signal.setitimer(timer, 0)


#: What is tried on recordings whose checksums are right.
FORGED: Final = {"forged": try_forged, "judged": try_judged}


def child(kind: str, good_path: Path, seed: int, count: int) -> None:
    """Exit with 0 if all went well; the number of the mutation in question is printed first."""
    data, good = good_path.read_bytes(), content(Store.open(good_path))
    whole = numbered(good_path)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spoiled.stageprof"
        for number in range(seed, seed + count):
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            rng = random.Random(number)
            if kind in FORGED:
                path.write_bytes(forged(data, rng))
                FORGED[kind](path)
            else:
                path.write_bytes(rng.choice(SPOILERS)(bytearray(data), rng))
                if try_spoiled(path, good, whole):
                    raise SystemExit(f"mutation {number} is silently different")
    assert peak_mib() < RESIDENT_MIB, f"{peak_mib()} MiB"


def peak_mib() -> float:
    """The most memory that this process had at once."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def run_child(*arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    return subprocess.run(
        [sys.executable, __file__, *map(str, arguments)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


# -- the tests ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[pytest.mark.nightly] * (seed >= MUTATIONS))
        for seed in range(0, BY_NIGHT, CHUNK)
    ],
)
@pytest.mark.parametrize("kind", ["spoiled", "forged"])
def test_mutated_recording_is_refused_or_says_what_is_missing(kind: str, seed: int) -> None:
    """B1, T12: no signal, no silently different result, none over 5 s, none over 512 MiB.

    1,000 of each kind every time, 10,000 by night; the golden recordings take turns.
    """
    good = GOLDENS[seed // CHUNK % len(GOLDENS)]
    done = run_child(kind, good, seed, CHUNK)
    assert done.returncode == 0, f"after {done.stdout.split()[-1:]}: {done.stderr[-2000:]}"


@pytest.mark.parametrize(
    ("seed", "count"), [(0, 40), pytest.param(1000, 1000, marks=pytest.mark.nightly)]
)
def test_mutated_recording_is_judged_or_refused(tmp_path: Path, seed: int, count: int) -> None:
    """B1, T12: what a liar made of a sound run ends in a summary or in one of our own errors."""
    generate(tmp_path / "run.stageprof", tasks=60, workers=2, threads=2)
    done = run_child("judged", tmp_path / "run.stageprof", seed, count)
    assert done.returncode == 0, f"after {done.stdout.split()[-1:]}: {done.stderr[-2000:]}"


def test_a_difference_would_be_seen(tmp_path: Path) -> None:
    """B1: the judge of mutations is one: a store that says something else is found out."""
    good, other = content(Store.open(GOLDEN)), Store.open(GOLDEN)
    assert not is_silently_different(Store.open(GOLDEN), good)
    run = dict(other.table("run"))
    stop = run["stop"].copy()
    stop[3] ^= 1
    other.table = lambda name: {**run, "stop": stop} if name == "run" else Store.table(other, name)  # type: ignore[method-assign]
    assert is_silently_different(other, good)


A: Final = Place("worker", "h", 1, "tcp://a:1", 0)


def batch(**fields: Any) -> bytes:
    """A batch with these fields in place of its own."""
    packed: bytes = msgpack.packb({**msgpack.unpackb(pack(A, 0, 0, [])), **fields})
    return packed


#: As many rows as a table may have in a batch.
MILLION: Final = 1 << 20


def _rows(count: int, column: bytes, seq: int = 0) -> bytes:
    return batch(seq=seq, tables={"run": [count, {"run": ["B", 0, column]}]})


def _key_bomb(elements: bytes, inner: int) -> bytes:
    """A batch whose packed key column holds one key of `inner` elements, or all of them."""
    count = 1 if inner else len(elements)
    head = b"\xdd" + count.to_bytes(4, "big")
    head += b"\xdd" + inner.to_bytes(4, "big") if inner else b""
    numbers = ["B", 0, bytes(count)]
    columns = {"run": numbers, "t": numbers, "key": ["K", 0, head + elements]}
    return batch(tables={"want": [count, columns]})


#: The batches of each bomb; a frame each.
BOMBS: Final[dict[str, Callable[[], list[bytes]]]] = {
    "zlib": lambda: [bytes(60 << 20)] * 20,
    "rows": lambda: [_rows(MILLION, bytes(MILLION), n) for n in range(60)],
    "claimed rows": lambda: [_rows(10**9, bytes(8))],
    "distinct keys": lambda: [pack(A, 0, 0, [(WANT, 0, 0, ("k", n)) for n in range(10**6)])],
    "key of a megabyte": lambda: [pack(A, 0, 0, [(WANT, 0, 0, "y" * 1_000_000)])],
    "long key": lambda: [pack(A, 0, 0, [(WANT, 0, 0, "y" * 50_000_000)])],
    "wide key": lambda: [_key_bomb(b"\x90" * (1 << 24), 1 << 24)],
    "short keys": lambda: [_key_bomb(b"\xa0" * MILLION, 0)],
    "too many keys": lambda: [_key_bomb(b"\xa0" * (1 << 24), 0)],
    "empty strings": lambda: [batch(strings=[""] * (1 << 24))],
    "distinct strings": lambda: [
        batch(seq=n, strings=[f"{n}.{i}" for i in range(1 << 18)]) for n in range(12)
    ],
    "places": lambda: [batch(place=["w", "h", n, "", 0]) for n in range(100_000)],
    "unknown tables": lambda: [batch(tables={f"{n:x}": [0, {}] for n in range(10**6)})],
    "unknown columns": lambda: [
        batch(tables={"run": [0, {f"{n:x}": ["q", 0, b""] for n in range(10**6)}]})
    ],
    "drop reasons": lambda: [batch(drops={f"{n:x}": n for n in range(10**6)})],
    "nesting": lambda: [b"\x91" * (60 << 20)],
}


#: Those that take a second or more even so: nothing else may run beside them.
HEAVY: Final = (
    "zlib", "distinct keys", "distinct strings", "places", "unknown tables", "unknown columns",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.alone] * (name in HEAVY)) for name in BOMBS],
)
def test_bomb_takes_neither_time_nor_memory(tmp_path: Path, name: str) -> None:
    """B3, T13: opened it takes less than 2 s and 512 MiB, whatever it claims to be."""
    frames = [(frame.BATCH, frame.join([b])) for b in BOMBS[name]()]
    path = tmp_path / "bomb.stageprof"
    path.write_bytes(resealed([(frame.META, b"{}"), *frames]))
    done = run_child("bomb", path)
    assert done.returncode == 0, done.stderr[-2000:]


def defuse(path: Path) -> None:
    """Open a bomb under the limits, and read everything."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    try_bomb(path)
    assert peak_mib() < RESIDENT_MIB, f"{peak_mib()} MiB"
    sys.stdout.write(f"{peak_mib():.0f} MiB at most\n")


# -- nothing that runs code ---------------------------------------------------------------

FORBIDDEN: Final = {"pickle", "marshal", "shelve", "yaml", "cloudpickle", "dill", "runpy"}


def test_collectors_import_no_loader_that_runs_code() -> None:
    """B10: the rest of what reads is looked at in tests/reliability/test_loaders.py."""
    for path in sorted((ROOT / "collectors").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not FORBIDDEN & {alias.name.split(".")[0] for alias in node.names}, path
            elif isinstance(node, ast.ImportFrom):
                assert (node.module or "").split(".")[0] not in FORBIDDEN, path
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"eval", "exec", "compile", "__import__"}, path


def test_opening_runs_nothing_from_the_recording() -> None:
    """B10: an audit hook sees no code loaded, no process started, no other file opened."""
    code = f"""if 1:
        import sys
        from stageprof_collectors.storage.store import Store
        Store.open({str(GOLDEN)!r}).keys([0])
        events = []
        sys.addaudithook(lambda name, arguments: events.append((name, arguments)))
        Store.open({str(GOLDEN)!r}).keys([0])
        seen = list(events)
        names = {{name for name, _ in seen}}
        assert names <= {{"open", "array.__new__"}}, names
        assert [str(a[0]) for n, a in seen if n == "open"][0].endswith(".stageprof")
    """
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    if sys.argv[1] == "bomb":
        defuse(Path(sys.argv[2]))
    else:
        child(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))


@pytest.mark.timeout(60)
def test_a_long_number_as_key_takes_no_longer_than_another_key() -> None:
    """Whether a text would read like a number was asked in the square of its length."""
    assert text_of_key("1" * 500_000 + "x").startswith("111")
    assert text_of_key("1" * 500_000).startswith("'111")


@pytest.mark.timeout(60)
def test_a_long_name_is_nobodys_line() -> None:
    """All its ends took the square of its length in memory."""
    store = Store()
    made = [(LINE, "layer", "etl.py", 41, 0)]
    store.add(pack(Place("client", "host", 1, "client", 1), 0, 1, made))
    lines = Lines(store)
    assert lines.of("layer").line == 41
    assert lines.of("-layer" * 100_000) == UNKNOWN


@pytest.mark.timeout(60)
def test_forged_names_of_cells_take_no_time() -> None:
    """Hundreds of them that begin alike were tried at every character of a text."""
    labels = [f"{i} {'a' * (20 + i)}b" for i in range(479)]
    texts = ["a" * 3_000_000]
    rename(texts, labels)
    assert len(texts[0]) == 3_000_000


def test_a_worker_with_a_number_of_threads_that_no_int_is_read_from_has_none(
    tmp_path: Path,
) -> None:
    store = Store()
    rows = [(MARK, 1, "worker seen", f"tcp://x:1 {'9' * 5000} 0 n")]
    store.add(pack(Place("scheduler", "host", 1, "tcp://host:1", 1), 0, 1, rows))
    assert Crew(Recording(store)).members == []
