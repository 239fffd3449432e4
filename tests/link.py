"""A network link that is slow and loses packets, between this network namespace and another.

In user space, for the kernel's own (netem) is not in every kernel: packets that come out of one TUN
device go into the other, later or not at all. As a program of its own it says "ready" and is that
link until its input ends: ``python link.py NAMESPACE DELAY_S LOSS BYTES_PER_S``.
"""

from __future__ import annotations

import fcntl
import heapq
import math
import os
import random
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

import clusters

#: Addresses of this side and of that one.
HERE, THERE = "10.78.0.1", "10.78.0.2"
MTU: Final = 9000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN, _IFF_NO_PI = 0x0001, 0x1000


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _device(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return device


def _ends(namespace: str) -> tuple[int, int]:
    """The devices of both sides, up."""
    near, far = f"{namespace}n", f"{namespace}f"
    ends = _device(near), _device(far)
    inside = ("ip", "netns", "exec", namespace)
    _run("ip", "link", "set", far, "netns", namespace)
    for prefix, device, mine, other in (((), near, HERE, THERE), (inside, far, THERE, HERE)):
        _run(*prefix, "ip", "addr", "add", mine, "peer", other, "dev", device)
        _run(*prefix, "ip", "link", "set", device, "mtu", str(MTU), "up")
    _run(*inside, "ip", "link", "set", "lo", "up")
    return ends


def _forward(ends: tuple[int, int], delay_s: float, loss: float, rate: float) -> None:
    """Carry packets until the input ends; those of one way one after another."""
    draw, under_way = random.Random(0), list[tuple[float, int, int, bytes]]()
    count, free = 0, dict.fromkeys(ends, 0.0)
    while True:
        pause = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
        ready = select.select([0, *ends], [], [], pause)[0]
        if 0 in ready:
            return
        now = time.monotonic()
        for end, other in (ends, ends[::-1]):
            packet = os.read(end, MTU + 64) if end in ready else b""
            if packet and draw.random() >= loss:
                count += 1
                free[end] = max(free[end], now) + len(packet) / rate
                heapq.heappush(under_way, (free[end] + delay_s, count, other, packet))
        while under_way and under_way[0][0] <= now:
            _, _, end, packet = heapq.heappop(under_way)
            os.write(end, packet)


@contextmanager
def slow(
    delay_s: float = 0.0, loss: float = 0.0, rate: float = math.inf
) -> Iterator[tuple[str, ...]]:
    """A namespace behind such a link; gives the command prefix for it.

    Args:
        delay_s: seconds for each way.
        loss: the part of the packets that is lost, each way.
        rate: bytes a second for each way.

    Skips the test, loudly, where namespaces or TUN devices cannot be made.
    """
    name = f"spl{os.getpid()}"
    try:
        _run("ip", "netns", "add", name)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NO SLOW LINK TESTED: namespaces cannot be made here ({error})")
    line = [sys.executable, __file__, name, *map(str, (delay_s, loss, rate))]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        clusters.shared.add(made.pid)
        try:
            if made.stdout.readline() != "ready\n":
                pytest.skip("NO SLOW LINK TESTED: TUN devices cannot be made here")
            yield "ip", "netns", "exec", name
        finally:
            made.communicate()
            clusters.shared.discard(made.pid)
            _run("ip", "netns", "del", name)


def main(namespace: str, delay_s: str, loss: str, rate: str) -> None:
    """Be the link."""
    ends = _ends(namespace)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    _forward(ends, float(delay_s), float(loss), float(rate))


if __name__ == "__main__":
    main(*sys.argv[1:])
