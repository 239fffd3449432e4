"""What every program here shares: its command line, its scheduler and its last line."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

import dask
from distributed import Client, LocalCluster

SCHEDULERS = ("distributed", "threads", "processes", "sync")

#: One line of a result: what it is about first, then what was measured.
Row: TypeAlias = tuple[str | int | float, ...]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the command line asked for."""

    size: str
    scheduler: str
    workers: int
    threads: int
    data: Path

    @property
    def full(self) -> bool:
        """Whether to work at full size."""
        return self.size == "full"


def main(
    name: str,
    description: str,
    work: Callable[[Settings], Sequence[Row]],
    *,
    prepare: Callable[[Settings], object] | None = None,
    only_distributed: str = "",
) -> int:
    """Runs a program as the command line says, prints its result and gives its exit status.

    Args:
        name: What the last line calls the program.
        description: The program's docstring; `--help` shows it.
        work: The computation; its seconds are reported.
        prepare: Makes the input before the cluster starts, and before the clock does.
        only_distributed: Why the program runs on no local scheduler, if it does not.
    """
    settings = parsed(sys.argv[1:], description, only_distributed)
    if prepare is not None:
        prepare(settings)
    with started(settings):
        start = time.perf_counter()
        rows = work(settings)
        seconds = time.perf_counter() - start
    report(name, rows, seconds)
    return 0


def report(name: str, rows: Sequence[Row], seconds: float) -> None:
    """Prints the beginning of the result, and the last line that tests read."""
    for row in rows[:12]:
        print(*(f"{value:.2f}" if isinstance(value, float) else value for value in row))
    print(json.dumps({"program": name, "result": digest(rows), "seconds": round(seconds, 3)}))


def digest(rows: Sequence[Row]) -> str:
    """The same text for the same result, in whatever order its rows came and its floats were added.

    Floats count to four decimals: give them in units where that is far above their error.
    """
    lines = sorted(json.dumps([_settled(value) for value in row]) for row in rows)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def _settled(value: str | float) -> str | float:
    if isinstance(value, float):
        return round(value, 4) + 0.0  # there is no minus zero
    return value


@contextmanager
def started(settings: Settings) -> Iterator[None]:
    """Makes the scheduler asked for the one that `compute` uses."""
    if settings.scheduler != "distributed":
        with dask.config.set(_local(settings)):
            yield
        return
    # Distributed 2026.8 logs the beginning and end of every shuffle as warnings.
    logging.getLogger("distributed.shuffle._scheduler_plugin").addFilter(_is_no_routine)
    if _client_is_active():
        yield
    else:
        with _cluster(settings) as cluster, Client(cluster) as client:
            yield
            # A worker that is told to close in the middle of a heartbeat logs that as an error.
            client.run(logging.getLogger("distributed.worker").setLevel, logging.CRITICAL)


def _local(settings: Settings) -> dict[str, object]:
    workers = settings.workers
    return {
        "scheduler": settings.scheduler,
        "num_workers": workers if settings.scheduler == "processes" else workers * settings.threads,
        # Beside an active client Dask would choose P2P, which no local scheduler can run.
        "dataframe.shuffle.method": "disk",
        "array.rechunk.method": "tasks",
    }


def _cluster(settings: Settings) -> LocalCluster:
    return LocalCluster(
        n_workers=settings.workers,
        threads_per_worker=settings.threads,
        processes=True,
        dashboard_address=None,
        # Even so it serves metrics, on a port that a cluster beside this one may have taken.
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
    )


def _is_no_routine(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(("Shuffle %s initialized", "Shuffle %s deactivated"))


def _client_is_active() -> bool:
    try:
        Client.current()
    except ValueError:
        return False
    return True


def parsed(argv: Sequence[str], description: str, only_distributed: str = "") -> Settings:
    """The settings in `argv`; what is wrong there ends the process with one line and status 2."""
    parser = _parser(description)
    settings = Settings(**vars(parser.parse_args(argv)))
    if only_distributed and settings.scheduler != "distributed":
        parser.error(
            f"--scheduler {settings.scheduler}: {only_distributed}; use --scheduler distributed"
        )
    return settings


def _parser(description: str) -> argparse.ArgumentParser:
    parser = _OneLineParser(description=description.partition("\n")[0])
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument(
        "--scheduler",
        choices=SCHEDULERS,
        default="distributed",
        help="distributed: the active client, or a new local cluster (default)",
    )
    parser.add_argument("--workers", type=_count, default=2, metavar="N", help="default 2")
    parser.add_argument(
        "--threads", type=_count, default=1, metavar="N", help="per worker; default 1"
    )
    parser.add_argument(
        "--data", type=_folder, default=_cache(), metavar="DIR", help="where made data are kept"
    )
    return parser


class _OneLineParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _folder(text: str) -> Path:
    path = Path(text)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"{text!r} is not a folder to write to: {error.strerror}"
        raise argparse.ArgumentTypeError(message) from error
    return path


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "stageprof-samples"
