"""Files that are no recording, each in another way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from stageprof_collectors.storage import frame


def sealed(*contents: tuple[int, bytes]) -> bytes:
    """A file of these frames, all of whose checksums are right."""
    head = frame.file_head(contents[0][1])
    return head + b"".join(frame.encode(head, n, *content) for n, content in enumerate(contents))


def _newer() -> bytes:
    data = bytearray(sealed((frame.META, b"{}")))
    data[8:10] = frame.MAJOR + 1, 7
    return bytes(data)


def _flipped() -> bytes:
    data = bytearray(sealed((frame.META, b"{}")))
    data[-1] ^= 1
    return bytes(data)


#: What is in them.
CONTENTS: Final[dict[str, Callable[[], bytes]]] = {
    "empty": lambda: b"",
    "text": lambda: b"print('hello')\n" * 9,
    "parquet": lambda: b"PAR1" + bytes(100) + b"PAR1",
    "cut in its head": lambda: sealed((frame.META, b"{}"))[:11],
    "head alone": lambda: sealed((frame.META, b"{}"))[:16],
    "of a newer major": _newer,
    "damaged header": _flipped,
    "header no object": lambda: sealed((frame.META, b"[1]")),
    "no batch": lambda: sealed((frame.META, b"{}"), (frame.END, b'{"frames": 1}')),
    "no batch that is one": lambda: sealed((frame.META, b"{}"), (frame.BATCH, bytes(400))),
    "a bomb": lambda: sealed((frame.META, b"{}"), (frame.BATCH, b"\xff" * (8 << 20))),
}


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


#: What is there in place of a file.
THINGS: Final[dict[str, Callable[[Path], object]]] = {
    "missing": lambda _: None,
    "folder": _folder,
    "fifo": os.mkfifo,
    "device": _device,
    "loop": _loop,
}
#: Names that no file has.
NAMES: Final = {"nul": "a\0b", "too long": "x" * 5000, "surrogate": "\udcff"}

#: All of them, by what is wrong.
BAD: Final = (*CONTENTS, *THINGS, *NAMES)


def made(kind: str, folder: Path) -> str:
    """The path of a bad file in a folder."""
    path = folder / "bad.stageprof"
    if kind in CONTENTS:
        path.write_bytes(CONTENTS[kind]())
    elif kind in THINGS:
        THINGS[kind](path)
    else:
        return str(folder / NAMES[kind])
    return str(path)
