"""What to do about many small pieces: larger ones, chosen where they are made, read or cut up."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

from stageprof_collectors.account.groups import Row
from stageprof_collectors.findings.advice import pieces_in_batches
from stageprof_collectors.findings.files import OPENED, PARQUET, fewer_files, one_store
from stageprof_collectors.findings.finding import Fix
from stageprof_collectors.findings.phrase import made_at, word
from stageprof_collectors.findings.quantity import seconds, size
from stageprof_collectors.findings.upstream import OF_CALL, Upstream

_TEXT: Final = (
    "Use larger {pieces}: about {target} each instead of {now}, so that there are about {k:,} "
    "times fewer tasks. Each task costs about {each} whatever its size. Choose the size where the "
    "data are read or made{at}: changing it later adds tasks instead of taking them away."
)
_UNTOLD: Final = (
    "Use larger {pieces}: about {k:,} times as large, so that there are so many times fewer tasks. "
    "Each task costs about {each} whatever its size. How large they are now is not told, so look "
    "whether your memory has room for it. Choose the size where the data are read or made{at}: "
    "changing it later adds tasks instead of taking them away."
)
_CUT: Final = (
    "Do without the many small pieces: `{prefix}`{at} makes {number:,} pieces of {before:,}, so "
    "that larger ones before it do not help. Give what is combined there the same chunks, or work "
    "on whole pieces with a function of your own (`map_blocks`, `map_partitions`); if neither "
    "goes, put them together right behind it (`rechunk`, `repartition`), {sized}, so that what "
    "follows has about {k:,} times fewer tasks. Each task costs about {each} whatever its size."
)
_CHOSEN: Final = (
    "Use larger {pieces}: {sized}, so that there are about {k:,} times fewer tasks. Each task "
    "costs about {each} whatever its size. They are cut{at}: choose the size there, or, if nothing "
    "there says how large they are, give what is combined there the same chunks{opened}."
)
_PAIRS: Final = (
    "Use larger {pieces} where the data are read or made{at}: `{prefix}`{by} makes one of each "
    "pair of them, {number:,} here, so that {pieces} {factor} times as large{sized} make about "
    "{k:,} times fewer tasks. Each task costs about {each} whatever its size."
)
_CALLED: Final = (
    "Make several of them in one call: `{name}`{at} makes one{now} each time. About {k:,} together "
    "(the code below) make as many times fewer tasks, and each task costs about {each} whatever "
    "its size."
)
_OPENED: Final = ", or make larger ones where the data are read or made{at}"
_SIZED: Final = "about {target} each instead of {now}"
_TIMES: Final = "about {k:,} times as large"
_UNSIZED: Final = (
    "about {k:,} of them each (how large they are is not told, so look whether your memory has "
    "room for it)"
)
_AIMED: Final = """\
import dask

dask.config.set({{"array.chunk-size": "{plain}"}})  # what chunks="auto" aims at
"""
_ARRAY: Final = f"""{_AIMED}\
chunks = "auto"  # for the call that makes them, in place of sizes of your own"""
_OPEN: Final = """\
chunks = "auto"  # for the call that opens them: from_zarr, from_array, xarray's open_dataset"""
_STORED: Final = _AIMED + _OPEN
_FRAME: Final = """\
npartitions = {parts}  # for the call that makes them: {call}(..., npartitions=npartitions)"""
_MAPPED: Final = """
# or, of from_map, {k} inputs in each call: a function that puts what it makes of them together"""
_READ: Final = """\
blocksize = "{plain}"  # for the call that reads: {call}(..., blocksize=blocksize)"""
_WHOLE: Final = (
    "Read several files in one task (the code below): each is a partition of its own whatever "
    "`blocksize` says{now}. About {k:,} together make as many times fewer tasks, and "
    "each task costs about {each} whatever its size. Or write them anew once, as fewer and larger "
    "ones."
)
_TOGETHER: Final = """\
import dask.dataframe as dd
import pandas as pd

def read_together(files, size={k}):
    batches = [files[start : start + size] for start in range(0, len(files), size)]
    return dd.from_map(read_batch, batches)

def read_batch(files):  # with what else you tell {call}
    return pd.concat([pd.{call}({file}) for file in files], ignore_index=True)"""
_FILES: Final = (
    "Each file{now} is a partition, and each task costs about {each} whatever its size: about "
    "{k:,} together make as many times fewer. "
)
_CUTS: Final = """\
chunks = "{plain}"  # for the call that cuts them: rechunk(chunks)"""
_PARTS: Final = """\
npartitions = {parts}  # for the call that cuts them: repartition(npartitions=npartitions)"""
#: Layers that cut as their users say; and those that do nothing else, of whose pieces a size is.
_CUTTING: Final = re.compile(r"rechunk|repartition")
_ONLY: Final = re.compile(r"(-?(rechunk|repartition|split|merge|p2p|transfer|barrier))+")
#: Layers that read text files, of which Dask is told how many bytes become a partition; and all
#: that read files.
_TEXTS: Final = re.compile(r"read[-_]?(csv|table|fwf|json)")
READS: Final = re.compile(f"{_TEXTS.pattern}|{PARQUET.pattern}")
#: What `read_sql_table` calls for each partition, in a `delayed` of Dask's own.
_SQL: Final = "read_sql_chunk"
#: What `from_pandas` calls its layer.
_GIVEN: Final = ("frompandas", "from_pandas")
#: Bytes of files that are worth a task of their own at least.
_LEAST_BLOCK: Final = 16e6


@dataclass(frozen=True)
class Pieces:
    """The pieces of the collection that has most: how many, and how large the usual one is.

    Their number is that of one graph: what a loop computes each time has no more pieces for that.
    """

    number: int
    #: 0: not told, as by local schedulers, or where tasks return parts of an answer
    nbytes: float
    #: None: not told
    frames: bool | None
    #: the usual size in the layer with the largest of those whose pieces grow with these
    largest: float = 0.0

    @property
    def word(self) -> str:
        """What their users call them."""
        return {None: "pieces", True: "partitions", False: "chunks"}[self.frames]


def larger(
    each_s: float,
    pieces: Pieces,
    k: int,
    made: Upstream,
    *,
    block: int | None = None,
    opened: Row | None = None,
) -> Fix:
    """What to do where a task costs `each_s` beside its work: pieces `k` times as large.

    They come from the layer `made`, of `block` bytes of a file each (0: whole files; None: not
    known); what is cut there from the layer `opened`, if another line made that.
    """
    if made.called and not made.row.prefix.startswith(_SQL):
        return _called(each_s, pieces, k, made.row)
    if made.pairs:
        return _paired(each_s, pieces, k, made, made.pairs)
    if not made.cut:
        return _made(each_s, pieces, k, made, block)
    if chosen(made):
        return _chosen(each_s, pieces, k, made.row, opened)
    return _cut(each_s, pieces, k, made)


def chosen(made: Upstream) -> bool:
    """Whether the pieces are as large as the user's `rechunk` or `repartition` says."""
    return _CUTTING.match(made.row.prefix) is not None


def _cut(each_s: float, pieces: Pieces, k: int, made: Upstream) -> Fix:
    """What to do where an operation cuts larger pieces up, whatever their size."""
    sized = (_SIZED if pieces.nbytes else _UNSIZED).format(**_target(pieces, k))
    return Fix(
        _CUT.format(
            prefix=made.row.prefix,
            at=made_at(made.row.file, made.row.line),
            number=pieces.number,
            before=made.cut,
            sized=sized,
            k=k,
            each=seconds(each_s),
        )
    )


def _called(each_s: float, pieces: Pieces, k: int, made: Row) -> Fix:
    """What to do where each is what a function of the user's gives."""
    name = made.prefix.removesuffix(OF_CALL)
    now = f" of {size(pieces.nbytes)}" if pieces.nbytes else ""
    at = made_at(made.file, made.line)
    text = _CALLED.format(name=name, at=at, now=now, k=k, each=seconds(each_s))
    return Fix(text, pieces_in_batches(word(name, "make"), k, frames=bool(pieces.frames)))


def _paired(each_s: float, pieces: Pieces, k: int, made: Upstream, by: Row) -> Fix:
    """What to do where they are made of pairs: twice as large makes a quarter as many."""
    factor = max(2, round(math.sqrt(k)))
    grown = f" ({size(made.nbytes * factor)} in place of {size(made.nbytes)})"
    text = _PAIRS.format(
        pieces=pieces.word,
        at=made_at(made.row.file, made.row.line, ", at "),
        prefix=by.prefix,
        by=made_at(by.file, by.line),
        number=pieces.number,
        factor=factor,
        sized=grown if made.nbytes else "",
        k=k,
        each=seconds(each_s),
    )
    return Fix(text, _ARRAY.format(plain=_plain(made.nbytes * factor)) if made.nbytes else "")


def _chosen(each_s: float, pieces: Pieces, k: int, made: Row, opened: Row | None) -> Fix:
    """What to do where the user does, or what they call (xarray's `groupby` does)."""
    at = ""
    if opened and (opened.file, opened.line) != (made.file, made.line):
        at = made_at(opened.file, opened.line, ", at ")
    told = bool(pieces.nbytes) and _ONLY.fullmatch(made.prefix) is not None
    sized = _SIZED if told else _TIMES if pieces.nbytes else _UNSIZED
    text = _CHOSEN.format(
        pieces=pieces.word,
        sized=sized.format(**_target(pieces, k)),
        k=k,
        each=seconds(each_s),
        at=made_at(made.file, made.line),
        opened=_OPENED.format(at=at) if at else "",
    )
    if pieces.frames:
        return Fix(text, _PARTS.format(parts=max(1, pieces.number // k)))
    return Fix(text, _CUTS.format(plain=_plain(pieces.nbytes * k)) if told else "")


def _target(pieces: Pieces, k: int) -> dict[str, Any]:
    return {"target": size(pieces.nbytes * k), "now": size(pieces.nbytes), "k": k}


def _made(each_s: float, pieces: Pieces, k: int, made: Upstream, block: int | None) -> Fix:
    """What to do where they are made or read."""
    reads = _TEXTS.match(made.row.prefix)
    if reads and block == 0:
        return _together(each_s, pieces, k, f"read_{reads[1]}")
    if PARQUET.match(made.row.prefix):
        now = f" of {size(pieces.nbytes)}" if pieces.nbytes else ""
        before = _FILES.format(now=now, each=seconds(each_s), k=k)
        return fewer_files(before, max(_LEAST_BLOCK, pieces.nbytes * k), made.row.prefix)
    if pieces.nbytes and OPENED.fullmatch(made.row.prefix):
        return one_store(
            **_target(pieces, k), each=seconds(each_s), plain=_plain(pieces.nbytes * k)
        )
    # What reads may be fused with what follows, and have its line.
    opened = made.store if made.store and made.store.line else made.row
    at = made_at(opened.file, opened.line, ", at ")
    if not pieces.nbytes:
        what = "chunks or partitions" if pieces.frames is None else pieces.word
        text = _UNTOLD.format(pieces=what, k=k, each=seconds(each_s), at=at)
        return Fix(text, _OPEN if made.store else "")
    usual = made.nbytes or pieces.nbytes
    text = _TEXT.format(
        pieces=pieces.word,
        target=size(usual * k),
        now=size(usual),
        k=k,
        each=seconds(each_s),
        at=at,
    )
    return Fix(text, _code(pieces, k, made, (block or usual) * k))


def _together(each_s: float, pieces: Pieces, k: int, call: str) -> Fix:
    """What to do where each is a file."""
    now = f", of {size(pieces.nbytes)} here" if pieces.nbytes else ""
    file = "file, lines=True" if call == "read_json" else "file"
    text = _WHOLE.format(now=now, k=k, each=seconds(each_s))
    return Fix(text, _TOGETHER.format(k=k, call=call, file=file))


def _code(pieces: Pieces, k: int, made: Upstream, block: float) -> str:
    if not pieces.frames:
        return (_STORED if made.store else _ARRAY).format(plain=_plain(block))
    reads = _TEXTS.match(made.row.prefix)
    if reads:
        return _READ.format(plain=_plain(block), call=f"read_{reads[1]}")
    call = "read_sql_table" if made.row.prefix.startswith(_SQL) else "from_pandas"
    code = _FRAME.format(parts=max(1, pieces.number // k), call=call)
    given = made.row.prefix.startswith((_SQL, *_GIVEN))
    return code if given else code + _MAPPED.format(k=k)


def _plain(nbytes: float) -> str:
    """A size as Dask reads it."""
    unit, name = (1e6, "MB") if nbytes >= 1e6 else (1e3, "kB")
    return f"{max(1, round(nbytes / unit))}{name}"
