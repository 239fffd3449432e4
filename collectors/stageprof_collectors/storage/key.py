"""Dask keys: from their msgpack form to a text that a person can read and that tells them apart.

Keys are the least trustworthy strings of all: a user may choose any text, of any size.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import msgpack
import msgspec
from msgspec import Raw

#: No key takes more than this in a recording or as text, in bytes and characters.
MAX_KEY: Final = 1024

#: What a list of keys that cannot be decoded is shown as.
UNREADABLE: Final = "<unreadable key>"

#: Lists up to this size are decoded whole: the objects in them stay below 64 times that.
_SMALL: Final = 1 << 20

#: The texts that a number, bytes, None, a tuple or a quoted string would have.
_LITERAL: Final = re.compile(
    r"""\(.*\)$|b?(['"]).*\1$|[+-]?(?:\d[\d_]*+(?:\.\d*+)?(?:e[+-]?\d++)?|inf|nan)$|(?:None|True|False)$""",
    re.IGNORECASE | re.DOTALL,
)
_MAYBE_LITERAL: Final = frozenset("('\"bB+-0123456789iInNtTfF")

_ANY: Final = msgspec.msgpack.Decoder(list[Any])
_RAW: Final = msgspec.msgpack.Decoder(list[Raw])
_ERRORS: Final = (ValueError, TypeError, OverflowError, RecursionError, msgpack.UnpackException)


def text_of_key(key: object) -> str:
    """The text of a decoded key, at most `MAX_KEY` characters.

    A str is shown as it is, everything else as its Python repr; a str that would read like one
    of those is quoted, so that `1` and `"1"` differ.
    """
    try:
        return _text(key)
    except RecursionError:  # nested a thousand deep
        return UNREADABLE


def _text(key: object) -> str:
    if type(key) is str:
        literal = key[:1] in _MAYBE_LITERAL and _LITERAL.match(key)
        text = repr(key) if literal else key
    else:
        text = repr(_as_tuple(key))
    return shorten(printable(text), text)


def _as_tuple(key: object) -> object:
    """Msgpack knows only arrays; in Dask keys those are tuples, at every depth."""
    if type(key) is list or type(key) is tuple:
        return tuple(_as_tuple(k) if type(k) in (list, tuple) else k for k in key)
    return key


def printable(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot carry, as backslash escapes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def shorten(text: str, whole: str | bytes) -> str:
    """The text cut to `MAX_KEY` characters, with a hash of the whole in place of its end."""
    if len(text) <= MAX_KEY:
        return text
    data = whole if isinstance(whole, bytes) else whole.encode("utf-8", "surrogatepass")
    return f"{text[: MAX_KEY - 18]}…#{blake2b(data, digest_size=8).hexdigest()}"


def pack_keys(keys: Sequence[bytes]) -> bytes:
    """Keys in msgpack form -> one msgpack array, in which no key exceeds `MAX_KEY` bytes."""
    return _head(len(keys)) + b"".join([k if len(k) <= MAX_KEY else _truncated(k) for k in keys])


def join_arrays(arrays: Sequence[bytes]) -> bytes:
    """The elements of several msgpack arrays, as `pack_keys` made them, as one array."""
    bodies = [array[_HEADS.get(array[0], 1) :] for array in arrays]
    return _head(sum(map(count_of, arrays))) + b"".join(bodies)


#: bytes of a msgpack array's head by its first byte, where it is not one
_HEADS: Final = {0xDC: 3, 0xDD: 5}


def _head(size: int) -> bytes:
    if size < 16:
        return bytes([0x90 | size])
    if size < 1 << 16:
        return b"\xdc" + size.to_bytes(2, "big")
    return b"\xdd" + size.to_bytes(4, "big")


def _truncated(key: bytes) -> bytes:
    text = text_of_key(_decode_one(key))
    data = text.encode("utf-8", "backslashreplace")
    if len(data) > MAX_KEY - 3:  # three bytes of msgpack head
        data = data[: MAX_KEY - 24].decode("utf-8", "ignore").encode()
        data += b"#" + blake2b(key, digest_size=8).hexdigest().encode()
    packed: bytes = msgpack.packb(data.decode())
    return packed


def _decode_one(key: bytes) -> object:
    if len(key) > _SMALL:  # whatever it is, its first bytes and its hash identify it
        return shorten(key[:MAX_KEY].decode("utf-8", "backslashreplace") + " " * MAX_KEY, key)
    for errors in ("surrogatepass", "backslashreplace"):
        try:
            return msgpack.unpackb(key, use_list=False, strict_map_key=False, unicode_errors=errors)
        except UnicodeDecodeError:
            continue
        except _ERRORS:
            break
    return f"{UNREADABLE}#{blake2b(key, digest_size=8).hexdigest()}"


def count_of(array: bytes) -> int:
    """How many elements the msgpack array that begins here claims to have; -1: it is none.

    Never more than there are bytes for.
    """
    first = array[0] if array else 0
    if 0x90 <= first <= 0x9F:
        count = first & 0x0F
    elif first == 0xDC:
        count = int.from_bytes(array[1:3], "big")
    elif first == 0xDD:
        count = int.from_bytes(array[1:5], "big")
    else:
        return -1
    return count if count < len(array) else -1


def unpack_keys(packed: bytes | memoryview) -> list[object]:
    """A msgpack array -> its keys decoded (arrays as list), those over `MAX_KEY` as text.

    Raises:
        ValueError: it is no msgpack array.
    """
    try:
        if len(packed) <= _SMALL:
            return list(_ANY.decode(packed))
    except _ERRORS:
        pass  # a lone surrogate, say, which msgspec refuses: one by one then
    try:
        raws = _RAW.decode(packed)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    return [_decode_one(bytes(raw)) for raw in raws]
