"""Checks of data that goes into a training: columns in pieces, and fewer pieces than threads."""

from __future__ import annotations

from collections.abc import Iterator

from stageprof_collectors.findings.finding import Finding, Fix, Severity, Where
from stageprof_collectors.findings.quantity import count
from stageprof_collectors.findings.rule import Limits
from stageprof_collectors.findings.spreading import code, enough, rows_each
from stageprof_collectors.findings.training import Given, at, cause, what
from stageprof_collectors.preflight.check import NOT_KNOWN, Check
from stageprof_collectors.preflight.plan import Plan
from stageprof_collectors.rules import column_chunks_for_training, pieces_per_thread
from stageprof_runtime.stage import Stage


def find_columns(plan: Plan, _limits: Limits) -> Iterator[Finding]:
    """One finding if columns are in pieces, or are put together for this training."""
    given = _given(plan)
    if given is None or max(given.column_pieces, given.merged) <= 1:
        return
    split = given.column_pieces > 1
    how = (
        f"is cut into {given.column_pieces} pieces across its columns: {given.framework} trains "
        f"on rows"
        if split
        else f"is kept in {given.merged} pieces across its columns, put together for each training"
    )
    yield Finding(
        rule=column_chunks_for_training.RULE.id,
        severity=Severity.SERIOUS if split else Severity.MODERATE,
        headline=f"{what(given)} {how} ({at(given)})",
        stage=Stage.EXECUTION,
        evidence={
            "row_pieces": given.pieces,
            "column_pieces": max(given.column_pieces, given.merged),
        },
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=column_chunks_for_training.fix(given),
        where=Where(given.file, given.line, given.variable, given.name),
        cause=cause(given),
    )


def find_pieces(plan: Plan, limits: Limits) -> Iterator[Finding]:
    """One finding if there are fewer pieces than threads."""
    given, threads = _given(plan), plan.threads
    if given is None or plan.cluster is None or given.column_pieces > 1:
        return
    if given.pieces >= limits["pieces"] * threads:
        return
    pieces = enough(given.pieces, int(limits["pieces"] * threads))
    yield Finding(
        rule=pieces_per_thread.RULE.id,
        severity=Severity.SERIOUS if given.pieces * 2 <= threads else Severity.MODERATE,
        headline=(
            f"{what(given)} has {count(given.pieces, 'piece')} for {count(threads, 'thread')} of "
            f"{count(len(plan.cluster.workers), 'worker')} ({at(given)})"
        ),
        stage=Stage.EXECUTION,
        evidence={
            "pieces": given.pieces,
            "threads": threads,
            "workers": len(plan.cluster.workers),
            "pieces_advised": pieces,
            "rows_each": rows_each(given, pieces),
        },
        cost_s=NOT_KNOWN[0],
        saving_s=NOT_KNOWN,
        fix=Fix(pieces_per_thread.TEXT, code(given, pieces)),
        where=Where(given.file, given.line, given.variable, given.name),
        cause=cause(given),
    )


def _given(plan: Plan) -> Given | None:
    """The data in the form in which the rules know it."""
    if plan.trained is None:
        return None
    facts, call, origin = plan.trained.facts, plan.trained.call, plan.trained.origin
    variable = origin.variable if origin.variable.isidentifier() else ""
    return Given(
        start=0, stop=0, call=call, number=0, file=plan.file, line=plan.line,
        variable=variable, label="", name=facts.name, type=facts.type,
        pieces=facts.pieces, column_pieces=facts.column_pieces, merged=facts.merged,
        rows=facts.rows, width=facts.width, nbytes=facts.nbytes, held=facts.held,
        pending=facts.pending, failed=0,
    )  # fmt: skip


CHECKS = (
    Check("column-chunks-for-training", find_columns, column_chunks_for_training.RULE.limits),
    Check("pieces-per-thread", find_pieces, pieces_per_thread.RULE.limits),
)
