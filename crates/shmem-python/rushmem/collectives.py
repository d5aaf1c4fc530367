"""Collectives of a team: all members call them, in the same order.

`dest` and `source` are symmetric contiguous arrays of one type, on all members those of the same
allocation. A blocking call returns when `dest` of this PE is complete. A call whose name ends in
`_nb` returns a `Request`, for which a program waits by `request.wait(timeout=..)` or `await`. All
members call the same of the two forms.

A signal is handled during a blocking call, too. If its handler raises an exception, as that of
Ctrl-C does, the call has not returned on this PE alone: the same call, made again, continues it.
All raise

    ValueError: an array is private, or the numbers of elements do not fit the team.
    TypeError: the types differ, or there is no such operation on them.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from .job import integer, started
from .library import library, type_of
from .memory import aligned
from .requests import Request, begin, check_team, finished, meet

SUM, PROD, MAX, MIN, BAND, BOR, BXOR = "sum", "prod", "max", "min", "and", "or", "xor"

# The kinds of NumPy types that have each operation.
KINDS = {SUM: "iufc", PROD: "iufc", MAX: "iuf", MIN: "iuf", BAND: "iu", BOR: "iu", BXOR: "iu"}


class _Plan(NamedTuple):
    """A collective: the routine of C, as `Library.family` names it, and its arguments."""

    call: str
    pattern: str
    c_name: str
    op: str
    arguments: tuple
    arrays: tuple[np.ndarray, ...] = ()


class Collectives:
    """The part of a team that its members do together."""

    handle: int

    def n_pes(self) -> int:
        raise NotImplementedError

    def sync(self) -> None:
        """Waits until all members have called. It completes no operations: see `barrier_all`."""
        started()
        self._run(_Plan("sync", "shmem_team_sync", "", "", ()))

    def sync_nb(self) -> Request:
        """Starts a sync."""
        started()
        return self._start(_Plan("sync", "shmem_team_sync", "", "", ()))

    def broadcast(self, dest: np.ndarray, source: np.ndarray, root: int) -> None:
        """Copies `source` of the member `root` to `dest` of all members; equal shapes."""
        self._run(self._broadcast(dest, source, root))

    def broadcast_nb(self, dest: np.ndarray, source: np.ndarray, root: int) -> Request:
        """Starts a broadcast."""
        return self._start(self._broadcast(dest, source, root))

    def collect(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Concatenates `source` of all members, of any lengths, in `dest`, which must have room for
        all: `SHMEM_CHECK=1` checks that it has."""
        self._run(self._gather("collect", dest, source))

    def collect_nb(self, dest: np.ndarray, source: np.ndarray) -> Request:
        """Starts a collect."""
        return self._start(self._gather("collect", dest, source))

    def fcollect(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Concatenates `source` of all members, of equal lengths, in `dest`."""
        self._run(self._gather("fcollect", dest, source))

    def fcollect_nb(self, dest: np.ndarray, source: np.ndarray) -> Request:
        """Starts an fcollect."""
        return self._start(self._gather("fcollect", dest, source))

    def alltoall(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Sends block i of `source` to member i, as block `my_pe()` of its `dest`. Both arrays have
        `n_pes()` equal blocks."""
        self._run(self._gather("alltoall", dest, source))

    def alltoall_nb(self, dest: np.ndarray, source: np.ndarray) -> Request:
        """Starts an alltoall."""
        return self._start(self._gather("alltoall", dest, source))

    def alltoalls(
        self, dest: np.ndarray, source: np.ndarray, dst: int, sst: int, nelems: int
    ) -> None:
        """As `alltoall` of blocks of `nelems` elements, which are `dst` elements apart in `dest`
        and `sst` in `source`, from 1. It has no form that does not block."""
        to, at = _addresses("alltoalls", dest, source)
        c_name, _ = type_of("alltoalls", "source", source.dtype)
        for array, stride, name in [(dest, dst, "dest"), (source, sst, "source")]:
            last = (self.n_pes() * nelems - 1) * stride
            if stride < 1 or nelems < 0 or last >= array.size:
                raise ValueError(
                    f"alltoalls: argument {name} has {array.size} elements, but {self.n_pes()}"
                    f" blocks of {nelems} with stride {stride} need {last + 1}"
                )
        function = library.family("shmem_<T>_alltoalls", c_name)
        meet("alltoalls", self.handle)
        check_team("alltoalls", function(self.handle, to, at, dst, sst, nelems))

    def all_reduce(self, dest: np.ndarray, source: np.ndarray, op: str = SUM) -> None:
        """Combines each element of `source` over all members by SUM, PROD, MAX, MIN, BAND, BOR or
        BXOR, to `dest` of all members; equal shapes. `dest` may be `source`."""
        self._run(self._reduction("all_reduce", f"{op}_reduce", op, dest, source))

    def all_reduce_nb(self, dest: np.ndarray, source: np.ndarray, op: str = SUM) -> Request:
        """Starts an all_reduce."""
        return self._start(self._reduction("all_reduce", f"{op}_reduce", op, dest, source))

    def inscan(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Sums each element of `source` over the members up to this one, it included."""
        self._run(self._reduction("inscan", "sum_inscan", SUM, dest, source))

    def inscan_nb(self, dest: np.ndarray, source: np.ndarray) -> Request:
        """Starts an inscan."""
        return self._start(self._reduction("inscan", "sum_inscan", SUM, dest, source))

    def exscan(self, dest: np.ndarray, source: np.ndarray) -> None:
        """Sums each element of `source` over the members before this one."""
        self._run(self._reduction("exscan", "sum_exscan", SUM, dest, source))

    def exscan_nb(self, dest: np.ndarray, source: np.ndarray) -> Request:
        """Starts an exscan."""
        return self._start(self._reduction("exscan", "sum_exscan", SUM, dest, source))

    def _broadcast(self, dest: np.ndarray, source: np.ndarray, root: int) -> _Plan:
        to, at = _addresses("broadcast", dest, source)
        _check_size("broadcast", dest, source.size, "as many as source")
        if not 0 <= integer("broadcast", "root", root) < self.n_pes():
            raise ValueError(
                f"broadcast: argument root is {root}, but the members are 0 to {self.n_pes() - 1}"
            )
        arguments = (to, at, source.nbytes, root)
        return _Plan("broadcast", "shmem_broadcastmem", "", "", arguments, (dest, source))

    def _gather(self, call: str, dest: np.ndarray, source: np.ndarray) -> _Plan:
        """Returns the plan of a collective that moves blocks of `source`."""
        to, at = _addresses(call, dest, source)
        nbytes, n = source.nbytes, self.n_pes()
        if call == "collect" and dest.size < source.size:
            raise ValueError(
                f"collect: argument dest has {dest.size} elements, but source alone {source.size}"
            )
        if call == "fcollect":
            _check_size(call, dest, n * source.size, f"{n} times those of source")
        elif call == "alltoall":
            _check_size(call, dest, source.size, "as many as source")
            if source.size % n:
                raise ValueError(f"{call}: {source.size} elements are not {n} equal blocks")
            nbytes //= n
        return _Plan(call, "shmem_<op>mem", "", call, (to, at, nbytes), (dest, source))

    def _reduction(
        self, call: str, routine: str, op: str, dest: np.ndarray, source: np.ndarray
    ) -> _Plan:
        to, at = _addresses(call, dest, source)
        _check_size(call, dest, source.size, "as many as source")
        if op not in KINDS:
            raise ValueError(f"{call}: argument op is {op!r}, not one of {', '.join(KINDS)}")
        c_name, _ = type_of(call, "source", source.dtype)
        if source.dtype.kind not in KINDS[op]:
            raise TypeError(f"{call}: there is no {op} of elements of {source.dtype}")
        return _Plan(call, "shmem_<T>_<op>", c_name, routine, (to, at, source.size), (dest, source))

    def _run(self, plan: _Plan) -> None:
        if self.n_pes() == 1 or not started().is_interruptible:
            function = library.family(plan.pattern, plan.c_name, plan.op)
            check_team(plan.call, function(self.handle, *plan.arguments))
            return

        finished(self.handle, plan[:-1], lambda: self._start(plan))

    def _start(self, plan: _Plan) -> Request:
        pattern = plan.pattern.replace("shmem_", "shmemx_", 1) + "_nb"
        function = library.family(pattern, plan.c_name, plan.op)
        return begin(plan.call, function, (self.handle, *plan.arguments), plan.arrays)


def _addresses(call: str, dest: np.ndarray, source: np.ndarray) -> tuple[int, int]:
    to = getattr(dest, "_address", None) or aligned(call, "dest", dest)
    at = getattr(source, "_address", None) or aligned(call, "source", source)
    if dest.dtype != source.dtype:
        raise TypeError(
            f"{call}: argument dest has elements of type {dest.dtype}, but source of {source.dtype}"
        )
    return to, at


def _check_size(call: str, dest: np.ndarray, expected: int, meaning: str) -> None:
    if dest.size != expected:
        raise ValueError(
            f"{call}: argument dest has {dest.size} elements, but needs {expected}, {meaning}"
        )
