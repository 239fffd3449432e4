"""What went wrong, and when? Request logs of many days, looked into as they come in.

Each day is a chain of tasks: its log is read, parsed and summed up. A day with many errors is
looked into while other days are still read, by a task that launches a task for each hour.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

from distributed import Client, Future, as_completed, worker_client

from program import Row, Settings, main

SEED = 404
PATHS = ("/", "/basket", "/login", "/orders", "/pay", "/search")

#: Days, and lines in the log of a day.
SHAPES = {"small": (24, 10_000), "full": (120, 75_000)}

#: The share of errors above which a day is looked into.
TOO_MANY = 0.03

#: Hour, path, status and milliseconds.
Request: TypeAlias = tuple[int, str, int, int]


def run(settings: Settings) -> list[Row]:
    """Rows of day, requests, errors and milliseconds, then of bad day, hour, path and errors."""
    client = Client.current()
    days, lines = SHAPES[settings.size]
    logs = client.map(read_log, range(days), lines=lines)
    parsed = dict(enumerate(client.map(parse, logs)))
    del logs  # so that the workers may forget a log as soon as it is parsed
    summaries = client.map(summary, list(parsed), list(parsed.values()))
    causes = follow(client, summaries, parsed)
    total = client.submit(add_up, summaries)
    return [*client.gather(summaries), *client.gather(causes), client.gather(total)]


def follow(
    client: Client, summaries: list[Future[Any]], parsed: dict[int, Future[Any]]
) -> list[Future[Any]]:
    """Lets go of each good day when its summary arrives, and has each bad day looked into."""
    causes = []
    for _, (day, requests, errors, _) in as_completed(summaries, with_results=True):
        future = parsed.pop(day)
        if errors > TOO_MANY * requests:
            causes.append(client.submit(cause, day, future))
    return causes


def read_log(day: int, lines: int) -> list[str]:
    """The log of a day, made up: some days have an hour in which one path fails."""
    rng = random.Random(SEED + day)
    bad_hour = rng.randrange(24) if rng.random() < 0.3 else -1
    bad_path = rng.choice(PATHS)
    return [line(rng, n * 24 // lines, bad_hour, bad_path) for n in range(lines)]


def line(rng: random.Random, hour: int, bad_hour: int, bad_path: str) -> str:
    """One line of a log."""
    path = bad_path if hour == bad_hour else PATHS[int(rng.random() * len(PATHS))]
    failed = rng.random() < (0.7 if hour == bad_hour else 0.01)
    status, ms = 500 if failed else 200, int(rng.random() * 900)
    return f'{hour:02}:00 "GET {path} HTTP/1.1" {status} {ms}ms'


def parse(log: list[str]) -> list[Request]:
    """The requests in a log."""
    fields = (entry.split() for entry in log)
    return [(int(t[:2]), path, int(status), int(ms[:-2])) for t, _, path, _, status, ms in fields]


def summary(day: int, requests: list[Request]) -> tuple[int, int, int, int]:
    """Day, requests, errors and milliseconds in all."""
    errors = sum(status >= 500 for _, _, status, _ in requests)
    return day, len(requests), errors, sum(ms for *_, ms in requests)


def cause(day: int, requests: list[Request]) -> Row:
    """The hour and path with most errors in a day; each hour is a task of its own."""
    hours: list[list[Request]] = [[] for _ in range(24)]
    for request in requests:
        hours[request[0]].append(request)
    with worker_client() as client:
        worst = client.gather(client.map(worst_path, hours))
    hour, (path, errors) = max(enumerate(worst), key=lambda found: found[1][1])
    return "cause", day, hour, path, errors


def worst_path(requests: list[Request]) -> tuple[str, int]:
    """The path with most errors, and how many."""
    errors = Counter(path for _, path, status, _ in requests if status >= 500)
    return max(errors.items(), key=lambda found: (found[1], found[0]), default=("", 0))


def add_up(summaries: Sequence[tuple[int, int, int, int]]) -> Row:
    """Requests, errors and milliseconds of all days."""
    return "total", *(sum(column) for column in list(zip(*summaries, strict=True))[1:])


if __name__ == "__main__":
    why = "tasks that launch tasks need a distributed client"
    sys.exit(main("futures_pipeline", __doc__, run, only_distributed=why))
