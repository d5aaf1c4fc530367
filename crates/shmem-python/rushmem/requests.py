"""Requests: collectives that go on while the program does something else, or handles a signal.

A blocking collective is a request for which Python waits in slices. A signal handler that raises an
exception, as that of Ctrl-C does, leaves the request as it is: it keeps its place among the
collectives of the team, and the same call, made again, waits for it.
"""

from __future__ import annotations

from ctypes import byref, c_int, c_void_p
from typing import Callable, Generator

import numpy as np

from .job import started
from .library import library
from .slices import in_slices, polled

# The requests that are not done: they keep their arrays alive.
_pending: set[Request] = set()


class Request:
    """A collective that goes on while the program does something else."""

    def __init__(self, call: str, arrays: tuple[np.ndarray, ...]) -> None:
        self._call = call
        self._handle = c_void_p()
        self._arrays = arrays

    def test(self) -> bool:
        """Returns whether the collective is complete on this PE."""
        is_done = c_int(1)
        library.shmemx_req_test(byref(self._handle), byref(is_done))
        if is_done.value:
            self._end()
        return bool(is_done.value)

    def wait(self, timeout: float | None = None) -> None:
        """Waits until the collective is complete on this PE.

        Raises:
            TimeoutError: it is not within `timeout` seconds; it goes on.
        """
        handle = byref(self._handle)
        in_slices(
            self._call, lambda limit: not library.shmemx_req_wait_timed(handle, limit), timeout
        )
        self._end()

    def __await__(self) -> Generator[None, None, None]:
        return polled(lambda _: self.test()).__await__()

    def _end(self) -> None:
        _pending.discard(self)
        self._arrays = ()


# The blocking collective of each team, by its handle, that an exception of a signal handler has
# interrupted: what identifies the call, and its request.
_interrupted: dict[int, tuple[tuple, Request]] = {}


def begin(
    call: str, function: Callable, arguments: tuple, arrays: tuple[np.ndarray, ...] = ()
) -> Request:
    """Starts a collective by its routine of C that does not block.

    Raises:
        As `check_team`.
    """
    request = Request(call, arrays)
    check_team(call, function(*arguments, byref(request._handle)))
    _pending.add(request)
    return request


def check_team(call: str, result: int) -> None:
    """Checks what a collective has returned.

    Raises:
        ValueError: this PE is no member of the team.
    """
    if result:
        raise ValueError(f"{call}: this PE is no member of the team, or the team was destroyed")


def finished(team: int, identity: tuple, start: Callable[[], Request]) -> None:
    """Waits for the request that `start` makes, or for that of an interrupted call of the same
    `identity`."""
    previous, request = _interrupted.get(team, (None, None))
    if request is None or previous != identity:
        request = start()
    _interrupted[team] = identity, request
    request.wait()
    del _interrupted[team]


def meet(call: str, team: int = 1) -> None:
    """Waits until all members, by default all PEs, are in this call, whose routine is then soon
    done. Signals are handled only here."""
    if started().is_interruptible:
        finished(team, (call,), lambda: begin(call, library.shmemx_team_sync_nb, (team,)))
