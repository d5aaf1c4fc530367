"""Locks of the whole job."""

from __future__ import annotations

import time

from .library import library
from .memory import Block
from .slices import in_slices


class Lock:
    """A lock that one PE holds at a time; all PEs create it. Use it by `with`.

    `acquire` without a timeout queues in the library, so PEs get the lock in the order of their
    calls, and Ctrl-C is handled once it has the lock.
    """

    def __init__(self) -> None:
        self._word = Block("Lock", 8)

    def acquire(self, timeout: float | None = None) -> None:
        """Takes the lock. Operations of its last holder are complete then.

        Raises:
            TimeoutError: other PEs have held it for `timeout` seconds.
            ValueError: `timeout` is negative or NaN.
        """
        if timeout is None:
            library.shmem_set_lock(self._word.address)
            return

        in_slices("Lock.acquire", self._acquired, timeout)

    def _acquired(self, limit: float) -> bool:
        """Tries to take the lock for some seconds."""
        end = time.monotonic() + limit
        pause = 0.0
        while library.shmem_test_lock(self._word.address):
            if time.monotonic() >= end:
                return False
            time.sleep(pause)
            pause = min(pause + 1e-5, 1e-3)
        return True

    def release(self) -> None:
        """Gives the lock back, which this PE holds, after its operations are complete."""
        library.shmem_clear_lock(self._word.address)

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()
