"""The summary as GitHub-flavoured markdown: for issues and CI comments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stageprof.renderers import findings_markdown
from stageprof.renderers.page import several
from stageprof_collectors.findings.quantity import seconds, share
from stageprof_collectors.summary import Summary
from stageprof_collectors.text import safe


def text(summary: Summary) -> str:
    """The summary in markdown."""
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: Summary) -> Iterator[str]:
    yield f"### stageprof: {_code(summary.label)}"
    yield ""
    yield safe(" · ".join(summary.facts), "prose", limit=1000)
    if summary.failures:
        yield ""
        yield f"**{safe('; '.join(summary.failures), 'prose', limit=500)}**"
    if summary.incomplete:
        yield ""
        yield f"**{safe(summary.incomplete, 'prose', limit=300)}**"
    yield from findings_markdown.lines(summary)
    yield from _stages(summary)
    yield from _steps(summary)
    yield from _layers(summary)
    yield from _first(summary)
    if summary.gil:
        yield ""
        yield f"GIL: {safe(summary.gil, 'prose', limit=300)}"
    yield ""
    yield f"Coverage: {summary.coverage}"
    if summary.missing:
        yield f"- {_code(f'Missing: {several(summary.missing, 300)}', limit=300)}"
    for problem in summary.problems:
        yield f"- {_code(problem)}"


def _stages(summary: Summary) -> Iterator[str]:
    rows = [(s.stage, seconds(s.wall_s), share(s.share), seconds(s.busy_s)) for s in summary.stages]
    yield from table(("stage", "wall", "share", "busy"), rows)


def _steps(summary: Summary) -> Iterator[str]:
    rows = [
        (f"{s.stage} {s.step}", seconds(s.wall_s), share(s.share), _code(s.where))
        for s in summary.steps
    ]
    yield from table(("costliest step", "wall", "share", "where"), rows)


def _layers(summary: Summary) -> Iterator[str]:
    rows = [
        (_code(r.layer), seconds(r.wall_s), f"{r.tasks:,}", _code(r.line) if r.line else "unknown")
        for r in summary.layers
    ]
    yield from table(("slowest layer", "wall", "tasks", "made at"), rows)


def _first(summary: Summary) -> Iterator[str]:
    first = summary.first
    if first is None:
        return
    split = ", ".join(f"{stage} {seconds(part)}" for stage, part in first.split)
    where = f" of {_code(first.line)}" if first.line else ""
    yield ""
    yield f"First task{where} after {seconds(first.seconds)}: {split}"


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """A table, after an empty line; nothing if it has no rows. Cells are safe already."""
    rows = list(rows)
    if not rows:
        return
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield f"| {' | '.join(row)} |"


def _code(text: str, limit: int = 120) -> str:
    return safe(text, "markdown", limit=limit)
