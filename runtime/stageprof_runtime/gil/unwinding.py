"""py-spy beside a process with `--native`: where its threads are, in C as well.

py-spy has to pause the process for each such look, and unwinds all of its threads, also those that
wait. It is asked for those too (`--idle`): it leaves waiting threads out else, and its trace ends
a frame only when the same thread is seen elsewhere, so that a thread that fell asleep would stand
for ever where it last worked. So each look says of each thread where it is, and what the trace has
is right from one look to the next. It counts time from when it had read its arguments, not from
when it says that it samples: with C frames it reads every library in between.
"""

from __future__ import annotations

import os

from stageprof_runtime.gil.spying import Spy

#: As `typing` has it; importing that would take longer than all else that the watch does first.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Final

#: Looks each second; what they cost is in docs/profiles.md.
RATE: Final = 10
#: Seconds of one run of py-spy: to begin costs it about as much as to look for some seconds, and
#: what it saw comes only when it ends.
SPELL_S: Final = 30
#: Bytes of a trace that are read, and nodes and looks that are told of it; the rest is cut.
LARGEST: Final = 1 << 24
NODES: Final = 20_000
LOOKS: Final = 20_000
#: Characters of a name and of a file's name, as the tree of stacks has them.
NAME: Final = 200
FILE: Final = 500

#: Files of C, of which a symbol may have a line.
_C: Final = (
    ".c", ".cc", ".cpp", ".cxx", ".cu", ".h", ".hpp", ".rs", ".s", ".S", ".asm", ".f", ".f90",
    ".pyx", ".pxd", ".pxi", ".inc",
)  # fmt: skip
#: Addresses that have no name differ from process to process.
NAMELESS: Final = "(no symbol)"
#: A stack without a frame of ours is that of no task.
_OURS: Final = "stageprof_runtime"
#: Where nobody is: the node around the outermost ones.
_ROOT: Final = -1
#: What is said where py-spy had no time.
MISSED: Final = "tasks were over before py-spy's first look"


class Unwinder(Spy):
    """py-spy that looks at C frames, in spells."""

    refusal = "blind"
    first_s = spell_s = SPELL_S
    # So that it lets go of the threads that it has stopped.
    gently = 2
    largest = LARGEST
    missed = MISSED

    def start(self) -> None:
        """Begin a spell."""
        import ctypes  # noqa: F401 (what becomes py-spy has it then, and its clock begins at once)

        super().start()

    def _what(self) -> list[str]:
        return ["--native", "--threads", "--idle"]

    def _seen(self, data: bytes) -> object | None:
        trace = Trace(self._began)
        for event in events(data):
            trace.add(event)
        trace.cut += len(data) >= self.largest
        told = trace.told()
        if not trace.rows:
            return None
        if not trace.c:
            self.refused = "py-spy tells of no C frame here"
            return None
        self.missed = ""
        return told

    def _ended(self) -> object | None:
        seen = super()._ended()
        if self._status:
            awaken(self._pid)
        if self._status == self.gently and not self._zero:  # it was asked to before it began
            self.refused = ""
        return seen


def awaken(pid: int) -> None:
    """Let a process go on that py-spy left stopped, as it may where it is killed."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state = file.read().rpartition(b")")[2].split()[0]
        if state == b"T":
            os.kill(pid, 18)  # SIGCONT
    except OSError:  # it has gone
        pass


def events(data: bytes) -> Iterator[dict[str, Any]]:
    """The events of a trace one by one, as far as it goes.

    Raises:
        ValueError: it is no trace.
    """
    from json import JSONDecoder

    text = data.decode(errors="replace").strip()
    decode, at = JSONDecoder().raw_decode, 1
    if text[:1] != "[" or (len(text) > 1 and text[1] not in "{]"):
        raise ValueError(f"no trace: {text[:40]}")
    while text[at : at + 1] == "{":
        try:
            event, at = decode(text, at)
        except ValueError:  # it was cut there
            if at == 1:
                raise ValueError(f"no trace: {text[:40]}") from None
            return
        yield event
        while text[at : at + 1] in (",", " "):
            at += 1


class Trace:
    """The events of a trace as a tree of stacks, and who stood where from when to when."""

    def __init__(self, zero: int) -> None:
        self._zero = zero
        self._frames: dict[tuple[str, str, int], int] = {}
        self._nodes: dict[tuple[int, int], int] = {}
        #: of each node the node around it, and its frame
        self._path: list[tuple[int, int]] = []
        #: of each node whether a task may be around it
        self._ours: list[bool] = []
        #: what py-spy calls a thread -> its identifier, where the two differ
        self._named: dict[int, int] = {}
        #: thread -> its stack as nodes, the outermost first
        self._stacks: dict[int, list[int]] = {}
        #: thread -> node and since when, and when something of it changed last
        self._since: dict[int, tuple[int, int]] = {}
        self._last: dict[int, int] = {}
        self.rows: list[tuple[int, int, int, int]] = []
        #: looks that are not told, and whether any frame was of C
        self.cut = 0
        self.c = False

    def add(self, event: dict[str, Any]) -> None:
        """Take in the next event."""
        thread, phase = int(event["tid"]), event["ph"]
        if phase == "M":
            self._name(thread, str(event["args"].get("name")))
            return
        at = self._zero + int(event["ts"]) * 1000
        if self._last.get(thread, at) != at:
            self._settle(thread, self._last[thread])
        self._last[thread] = at
        stack = self._stacks.setdefault(thread, [])
        if phase == "E":
            del stack[-1:]
        elif phase == "B":
            stack.append(self._inner(stack[-1] if stack else _ROOT, event))

    def _name(self, thread: int, text: str) -> None:
        ident = text.partition(":")[0]
        if ident.isdecimal():
            self._named[thread] = int(ident)

    def _inner(self, node: int, event: dict[str, Any]) -> int:
        """The node of a frame that is called from a node."""
        name, where = str(event["name"]), event["args"]
        if name.startswith("thread ("):  # py-spy's own word, around all others
            return node
        frame = described(name, str(where["filename"]), int(where["line"] or 0))
        self.c |= not frame[2]
        number = self._frames.setdefault(frame, len(self._frames))
        if frame[0] == NAMELESS and node >= 0 and self._of(node) == number:
            return node
        key = node, number
        if key not in self._nodes and len(self._nodes) >= NODES:
            self.cut += 1
            return node
        if key not in self._nodes:
            self._nodes[key] = len(self._nodes)
            self._path.append(key)
            self._ours.append(_OURS in frame[1] or (node >= 0 and self._ours[node]))
        return self._nodes[key]

    def _of(self, node: int) -> int:
        """The frame of a node."""
        return self._path[node][1]

    def _settle(self, thread: int, at: int) -> None:
        """The thread's stack is what it is from then on."""
        node, start = self._since.pop(thread, (_ROOT, at))
        if at > start and node >= 0 and self._ours[node]:
            if len(self.rows) < LOOKS:
                self.rows.append((start, at, self._named.get(thread, thread), node))
            else:
                self.cut += 1
        stack = self._stacks[thread]
        if stack:
            self._since[thread] = stack[-1], at

    def told(self) -> dict[str, object]:
        """What is to be told: frames, the nodes that rows need, each with its frame, and rows."""
        for thread, at in self._last.items():
            self._settle(thread, at)
        needed, frames = sorted(self._needed()), list(self._frames)
        node = {old: new for new, old in enumerate(needed)}
        used = sorted({self._of(old) for old in needed})
        frame = {old: new for new, old in enumerate(used)}
        return {
            "frames": [frames[old] for old in used],
            "nodes": [
                (node.get(self._path[old][0], _ROOT), frame[self._of(old)]) for old in needed
            ],
            "rows": [(*row[:3], node[row[3]]) for row in self.rows],
            "cut": self.cut,
        }

    def _needed(self) -> set[int]:
        needed: set[int] = set()
        for *_, last in self.rows:
            node = last
            while node >= 0 and node not in needed:
                needed.add(node)
                node = self._path[node][0]
        return needed


def described(name: str, file: str, line: int) -> tuple[str, str, int]:
    """A frame as it is told; of C the symbol, the library's (or source's) name, and 0."""
    if not of_c(file, line):
        return name[:NAME], file[:FILE], max(line, 1)
    symbol = NAMELESS if name.startswith("0x") else name
    return symbol[:NAME], os.path.basename(file)[:FILE], 0


def of_c(file: str, line: int) -> bool:
    """Whether a frame is not Python's: it has no line, or its file is none of Python's."""
    if file.endswith((".py", ".pyc", ".pyw")) or file.startswith("<"):
        return False
    return line <= 0 or file.endswith(_C) or ".so" in os.path.basename(file)
