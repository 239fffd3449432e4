"""A network cable that is slow and loses packets, in user space: `python wire.py A B DELAY LOSS`.

Makes two network devices, of which one can be moved to another namespace. What goes into one
comes out of the other, DELAY seconds later, unless it is one of the share LOSS that is lost. For
kernels without netem.
"""

from __future__ import annotations

import fcntl
import os
import random
import select
import struct
import sys
import time
from collections import deque

#: See linux/if_tun.h: make a device, of IP packets, without a header of its own.
TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x0001 | 0x1000
#: Bytes of the largest packet.
PACKET = 65_536


def device(name: str) -> int:
    """A file that reads what is sent to a new network device, and writes what comes from it."""
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN_NO_PI))
    return file


def carry(ends: tuple[int, int], delay: float, loss: float) -> None:
    """Carry packets between two devices for ever."""
    chance = random.Random(0)
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    travelling: deque[tuple[float, int, bytes]] = deque()
    while True:
        wait = max(0.0, travelling[0][0] - time.monotonic()) if travelling else None
        for end in select.select(ends, (), (), wait)[0]:
            packet = os.read(end, PACKET)
            if chance.random() >= loss:
                travelling.append((time.monotonic() + delay, other[end], packet))
        while travelling and travelling[0][0] <= time.monotonic():
            _, end, packet = travelling.popleft()
            try:
                os.write(end, packet)
            except OSError:  # the device is down: lost, too
                continue


if __name__ == "__main__":
    here, there = device(sys.argv[1]), device(sys.argv[2])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    carry((here, there), float(sys.argv[3]), float(sys.argv[4]))
