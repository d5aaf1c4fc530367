"""Long waits as a series of short ones, between which Python handles signals or runs other tasks.

The interpreter handles Ctrl-C and other signals only between calls of the library, so no call may
last as long as other PEs like.
"""

from __future__ import annotations

import asyncio
import time
from typing import Callable

SLICE = 0.1


def in_slices(call: str, wait: Callable[[float], bool], timeout: float | None) -> None:
    """Calls `wait(seconds)` until it returns true, for `timeout` seconds and `SLICE` at a time.

    Raises:
        TimeoutError: it has not within the time.
        ValueError: `timeout` is negative or NaN.
    """
    if timeout is None:
        while not wait(SLICE):
            pass
        return

    if not timeout >= 0:
        raise ValueError(f"{call}: argument timeout is {timeout}, not 0 or more seconds")
    end = time.monotonic() + timeout
    left = timeout
    while not wait(min(left, SLICE)):
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"{call}: has waited {timeout} s")


async def polled(look: Callable[[float], bool]) -> None:
    """Calls `look(0)` until it returns true. Other tasks run in between."""
    pause = 0.0
    while not look(0.0):
        await asyncio.sleep(pause)
        # At first as often as the other tasks permit, and then up to 1000 times a second.
        pause = min(pause + 1e-5, 1e-3)
