"""The table of findings: one flat row for each, best first."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from stageprof_collectors.findings.finding import Finding

_COLUMNS = [
    "rule", "severity", "headline", "cost_s", "saving_low_s", "saving_high_s", "file", "line",
    "variable", "layer", "prefix", "stage", "link",
]  # fmt: skip


def findings_frame(found: Iterable[Finding]) -> pd.DataFrame:
    """See `Recording.findings_frame`."""
    rows = [
        {
            "rule": f.rule,
            "severity": str(f.severity),
            "headline": f.headline,
            "cost_s": f.cost_s,
            "saving_low_s": f.saving_s[0],
            "saving_high_s": f.saving_s[1],
            "file": f.where.file,
            "line": f.where.line,
            "variable": f.where.variable,
            "layer": f.where.layer,
            "prefix": f.where.prefix,
            "stage": str(f.stage or ""),
            "link": f.link,
        }
        for f in found
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)
