"""Contexts: streams of operations that are ordered and completed apart from each other.

A call of this module's `DEFAULT`, which are also functions of the package, is on the default
context. Calls of a context of a team number the PEs as the team does.
"""

from __future__ import annotations

from contextlib import contextmanager
from ctypes import byref, c_size_t, c_void_p
from typing import Iterator

import numpy as np

from . import job
from .atomics import Atomics
from .library import library
from .requests import meet
from .slices import in_slices, polled
from .teams import WORLD, Team
from .transfers import Transfers

SERIALIZED, PRIVATE, NOSTORE = 1, 2, 4
_SESSION_BATCH = _SESSION_TOTAL_OPS = 1


class Context(Transfers, Atomics):
    """A context of a team; the operations of `Transfers` and `Atomics` are its methods."""

    def __init__(self, team: Team = WORLD, options: int = 0) -> None:
        """Creates a context. `options` combines by `|`: SERIALIZED, the program lets one thread
        call at a time; PRIVATE, only the creating thread calls; NOSTORE, no order of stores.

        Raises:
            RuntimeError: the library has no further context.
        """
        self.n_pes = team.n_pes()
        self._kept: list[np.ndarray] = []
        handle = c_void_p()
        if library.shmem_team_create_ctx(team.handle, options, byref(handle)) or not handle.value:
            raise RuntimeError("Context: the library cannot create a further context")
        self.handle = handle.value

    def fence(self) -> None:
        """Orders the operations before the call before those after it, for each PE."""
        library.shmem_ctx_fence(self.handle)

    def quiet(self, timeout: float | None = None) -> None:
        """Waits until all operations are complete on all PEs, and results are here.

        Raises:
            TimeoutError: they are not within `timeout` seconds.
        """
        handle, kept = self.handle, len(self._kept)
        in_slices("quiet", lambda limit: not library.shmemx_ctx_quiet_timed(handle, limit), timeout)
        del self._kept[:kept]

    async def quiet_async(self) -> None:
        """As `quiet`, while other tasks of asyncio run."""
        handle, kept = self.handle, len(self._kept)
        await polled(lambda limit: not library.shmemx_ctx_quiet_timed(handle, limit))
        del self._kept[:kept]

    @contextmanager
    def session(self, batch: bool = True, total_ops: int | None = None) -> Iterator[None]:
        """A session: the `with` block has many small operations, about `total_ops`, that the
        library may combine. It changes neither their order nor their completion."""
        config = byref(c_size_t(total_ops or 0))
        mask = 0 if total_ops is None else _SESSION_TOTAL_OPS
        options = _SESSION_BATCH if batch else 0
        library.shmem_ctx_session_start(self.handle, options, config, mask)
        try:
            yield
        finally:
            library.shmem_ctx_session_stop(self.handle)

    def destroy(self) -> None:
        """Completes the operations, and ends the context. The end of a `with` block does, too."""
        if self.handle:
            library.shmem_ctx_destroy(self.handle)
            self.handle, self.n_pes = 0, 0
            self._kept.clear()

    def __enter__(self) -> Context:
        return self

    def __exit__(self, *exception: object) -> None:
        self.destroy()


class _Default(Context):
    """The default context, which exists without a call."""

    def __init__(self) -> None:
        self.handle = 1
        self.n_pes = 0
        self._kept = []

    def destroy(self) -> None:
        raise RuntimeError("destroy: the default context ends with the job")


DEFAULT = _Default()


def barrier_all() -> None:
    """Completes the operations on the default context, and waits until all PEs have called."""
    if job.started().is_interruptible:
        DEFAULT.quiet()
        meet("barrier_all")
    else:
        kept = len(DEFAULT._kept)
        library.shmem_barrier_all()
        del DEFAULT._kept[:kept]


@job.on_start
def _start() -> None:
    DEFAULT.n_pes = job.n_pes()
