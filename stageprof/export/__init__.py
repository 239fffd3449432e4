"""A recording in the formats of other tools: one file each, and the one table of them."""

from __future__ import annotations

from stageprof.export import collapsed, csv, parquet, perfetto, prof, speedscope
from stageprof.export.target import Format

#: Every format by the name that `--to` takes.
FORMATS: dict[str, Format] = {
    "parquet": Format(parquet.write, "-parquet"),
    "perfetto": Format(perfetto.write, ".perfetto.json"),
    "csv": Format(csv.write, "-csv"),
    "speedscope": Format(speedscope.write, ".speedscope.json"),
    "collapsed": Format(collapsed.write, ".collapsed.txt"),
    "prof": Format(prof.write, ".prof"),
}
