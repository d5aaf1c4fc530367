"""The job: its begin, its end, and what an exception that nobody handles does to it.

The library is initialized when a program first asks for a number or for memory, and finalized when
the interpreter exits. An exception that nobody handles on a PE ends the job.

Collectives return to Python at intervals, so that Ctrl-C is handled, unless SIGINT has the default
action or is ignored on all PEs at the initialization: then nothing in Python could handle it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
import traceback
from ctypes import addressof, byref, c_int, c_int64, c_uint64
from operator import index
from types import TracebackType
from typing import Any, Callable

from .library import library

THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)

# The time in which the PE that failed first prints its traceback; the others print nothing.
OTHERS_WAIT = 2.0

# Symmetric words of 64 bits: the number of failures, and two by which PEs agree on signals.
_WORDS = 3


class _Job:
    """What this process knows of its job."""

    def __init__(self) -> None:
        self.pid = 0  # of the process that is the PE; 0 before the initialization
        self.pe = 0
        self.n_pes = 0
        self.is_finalized = False
        self.must_finalize = False
        self.failures = 0  # address of a symmetric word on PE 0: how many PEs have failed
        self.is_interruptible = False  # whether PEs wait for each other so that signals are handled
        self.starters: list[Callable[[], None]] = []


_job = _Job()


def init(thread_level: int = THREAD_MULTIPLE) -> int:
    """Initializes the library, unless it is; returns the thread level that it provides.

    Needed only for another thread level than `THREAD_MULTIPLE`: whatever needs the job initializes
    it. `THREAD_MULTIPLE` lets every thread of Python call, and so also the garbage collector.

    Raises:
        RuntimeError: the job was finalized, or there is no such level.
    """
    if _job.is_finalized:
        raise RuntimeError("init: the job was finalized, and a process starts only one")

    is_initialized, provided = c_int(), c_int(thread_level)
    library.shmem_query_initialized(byref(is_initialized))
    if not is_initialized.value:
        if library.shmem_init_thread(thread_level, byref(provided)):
            raise RuntimeError(f"init: argument thread_level is {thread_level}, not 0 to 3")
        _job.must_finalize = True
    if not _job.pid:
        _begin()
    return provided.value


def _begin() -> None:
    """Learns the numbers of the job, and prepares for exceptions that nobody handles."""
    _job.pe = library.shmem_my_pe()
    _job.n_pes = library.shmem_n_pes()
    _job.failures = library.shmem_calloc(_WORDS, 8)
    _job.is_interruptible = _job.n_pes > 1 and _is_sigint_handled()
    _job.pid = os.getpid()
    for starter in _job.starters:
        starter()

    previous = sys.excepthook

    def hook(kind, value, trace):
        abort(kind, value, trace, previous)

    sys.excepthook = hook


def _is_sigint_handled() -> bool:
    """Returns whether Python handles SIGINT on any PE; all PEs call one form of collectives."""
    mine, any_pe = (c_int64.from_address(_job.failures + 8 * i) for i in range(1, _WORDS))
    mine.value = signal.getsignal(signal.SIGINT) not in (signal.SIG_DFL, signal.SIG_IGN, None)

    world = 1
    library.family("shmem_<T>_<op>", "int64", "max_reduce")(
        world, addressof(any_pe), addressof(mine), 1
    )
    return bool(any_pe.value)


def started() -> _Job:
    """Returns the job, which this initializes if nothing has."""
    if not _job.pid or _job.is_finalized:
        init()
    return _job


def on_start(starter: Callable[[], None]) -> Callable[[], None]:
    """Has `starter` called when the job has begun; a decorator."""
    _job.starters.append(starter)
    return starter


def integer(call: str, name: str, value: Any) -> int:
    """Returns an argument as an integer, which it must be; `me / 2` is none.

    Raises:
        TypeError: it is of another type.
    """
    try:
        return index(value)
    except TypeError:
        raise TypeError(f"{call}: argument {name} is {value!r}, not an integer") from None


def check_pe(call: str, pe: object, n_pes: int) -> None:
    """Checks that an argument is the number of one of `n_pes` PEs.

    Raises:
        ValueError, TypeError: it is another number, or none.
    """
    if not n_pes:
        raise ValueError(f"{call}: the context was destroyed")
    if not 0 <= integer(call, "pe", pe) < n_pes:
        raise ValueError(f"{call}: argument pe is {pe}, but the PEs are 0 to {n_pes - 1}")


def my_pe() -> int:
    """Returns the number of this PE, from 0 to `n_pes() - 1`."""
    return started().pe


def n_pes() -> int:
    """Returns the number of PEs of the job."""
    return started().n_pes


def finalize() -> None:
    """Ends this PE's part of the job; all PEs call it. The exit of the interpreter does, too.

    Symmetric arrays must not be used afterwards.
    """
    if _job.pid == os.getpid() and not _job.is_finalized:
        _job.is_finalized = True
        if _job.must_finalize:
            library.shmem_finalize()


def global_exit(status: int) -> None:
    """Ends the job, all PEs, with this exit status. Does not return."""
    sys.stdout.flush()
    sys.stderr.flush()
    started()
    library.shmem_global_exit(status)


def abort(
    kind: type[BaseException],
    value: BaseException,
    trace: TracebackType | None,
    show: Callable[..., object] = traceback.print_exception,
) -> None:
    """Ends the job because of an exception, whose traceback the PE that fails first prints.

    `show` prints it. In a process that is no PE, such as a child of one, that is all.
    """
    is_pe = _job.pid == os.getpid() and not _job.is_finalized
    if not is_pe:
        show(kind, value, trace)
        return

    if _is_first_failure():
        print(f"PE {_job.pe} of {_job.n_pes}:", file=sys.stderr)
        show(kind, value, trace)
    else:
        time.sleep(OTHERS_WAIT)
    global_exit(130 if issubclass(kind, KeyboardInterrupt) else 1)


def _is_first_failure() -> bool:
    """Returns true unless another PE has failed before. Waits for PE 0 for a limited time."""
    before = c_uint64(0)
    fetch = library.family(
        "shmem_ctx_<T>_atomic_fetch_<op>_nbi", "uint64", op="add", c_type=c_uint64
    )
    default = 1
    fetch(default, byref(before), _job.failures, 1, 0)
    library.shmemx_ctx_quiet_timed(default, OTHERS_WAIT)
    return before.value == 0


# Registered at the import, so that what a program registers later runs earlier.
atexit.register(finalize)
