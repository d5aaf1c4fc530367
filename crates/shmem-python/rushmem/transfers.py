"""Puts, gets and puts with a signal, the calls of a context that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .job import check_pe, integer
from .library import library, type_of
from .memory import address_of, contiguous, element, symmetric

SET, ADD = 1, 2


class Transfers:
    """The part of a context that moves elements."""

    handle: int
    n_pes: int
    _kept: list[np.ndarray]

    def put(self, dest: np.ndarray, source: Any, pe: int) -> None:
        """Copies the elements of `source` to those of `dest` on PE `pe`.

        `dest` is symmetric and contiguous. `source` is an array of its type with as many elements,
        or what NumPy makes one of; it may be changed when the call returns.

        Raises:
            ValueError: `pe` is no PE, `dest` is private, or the numbers of elements differ.
            TypeError: the types differ.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("put", pe, self.n_pes)
        to = getattr(dest, "_address", None) or contiguous("put", "dest", dest)
        source, nbytes = _source("put", dest, source)
        at = address_of(source)
        if to - nbytes < at < to + nbytes:
            # A put to this PE itself would copy elements that it has just overwritten.
            source = source.copy()
            at = address_of(source)
        library.shmem_ctx_putmem(self.handle, to, at, nbytes, pe)

    def get(self, dest: np.ndarray, source: np.ndarray, pe: int) -> None:
        """Copies the elements of `source` on PE `pe` to `dest`, a contiguous array of this PE.

        Raises:
            As `put`.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("get", pe, self.n_pes)
        at = getattr(source, "_address", None) or contiguous("get", "source", source)
        nbytes = _dest("get", dest, source)
        to = address_of(dest)
        if at - nbytes < to < at + nbytes:
            # A get from this PE itself would copy elements that it has just overwritten.
            copy = np.empty(nbytes, np.uint8)
            library.shmem_ctx_getmem(self.handle, address_of(copy), at, nbytes, pe)
            dest[...] = copy.view(dest.dtype).reshape(dest.shape)
            return
        library.shmem_ctx_getmem(self.handle, to, at, nbytes, pe)

    def put_nbi(self, dest: np.ndarray, source: np.ndarray, pe: int) -> None:
        """Starts a put, which is complete after `quiet`. Until then `source` must not change; it
        is kept alive.

        Raises:
            As `put`.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("put_nbi", pe, self.n_pes)
        to = getattr(dest, "_address", None) or contiguous("put_nbi", "dest", dest)
        source, nbytes = _source("put_nbi", dest, source)
        self._kept.append(source)
        library.shmem_ctx_putmem_nbi(self.handle, to, address_of(source), nbytes, pe)

    def get_nbi(self, dest: np.ndarray, source: np.ndarray, pe: int) -> None:
        """Starts a get; `dest` has the elements after `quiet`, and is kept alive until then.

        Raises:
            As `put`.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("get_nbi", pe, self.n_pes)
        at = getattr(source, "_address", None) or contiguous("get_nbi", "source", source)
        nbytes = _dest("get_nbi", dest, source)
        self._kept.append(dest)
        library.shmem_ctx_getmem_nbi(self.handle, address_of(dest), at, nbytes, pe)

    def put_signal(
        self,
        dest: np.ndarray,
        source: Any,
        signal: np.ndarray,
        value: int,
        pe: int,
        op: int = SET,
    ) -> None:
        """Puts, and then sets the signal of PE `pe` to `value`, or adds it with `op=ADD`.

        A PE that has seen the new signal, by `wait_until`, sees the elements. `signal` is a
        symmetric array of uint64, of which the first element counts.

        Raises:
            As `put`; TypeError also if `signal` has another type.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("put_signal", pe, self.n_pes)
        to = getattr(dest, "_address", None) or contiguous("put_signal", "dest", dest)
        source, nbytes = _source("put_signal", dest, source)
        word = _signal("put_signal", signal, value, op)
        library.shmem_ctx_putmem_signal(
            self.handle, to, address_of(source), nbytes, word, value, op, pe
        )

    def signal(self, signal: np.ndarray, value: int, pe: int, op: int = SET) -> None:
        """Sets the signal of PE `pe` to `value`, or adds it with `op=ADD`, without elements.

        Raises:
            As `put_signal`.
        """
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe("signal", pe, self.n_pes)
        word = _signal("signal", signal, value, op)
        change = library.shmem_ctx_signal_add if op == ADD else library.shmem_ctx_signal_set
        change(self.handle, word, value, pe)

    def _put_part(self, part: np.ndarray, value: Any, pe: int) -> None:
        """Puts `value`, as an assignment to `part` would broadcast and convert it, to PE `pe`."""
        source = np.empty(part.shape, part.dtype)
        source[...] = value
        if part.flags.c_contiguous:
            self.put(part, source, pe)
            return

        at = symmetric("put", "dest", part)
        stride, block, n_blocks, size = _blocks("put", part)
        if block == 1:
            iput = library.family("shmem_ctx_iput<N>", size)
            iput(self.handle, at, address_of(source), stride, 1, n_blocks, pe)
        else:
            ibput = library.family("shmem_ctx_ibput<N>", size)
            ibput(self.handle, at, address_of(source), stride, block, block, n_blocks, pe)

    def _get_part(self, part: np.ndarray, pe: int) -> np.ndarray:
        """Returns a private copy of the elements of `part` on PE `pe`."""
        dest = np.empty(part.shape, part.dtype)
        if part.flags.c_contiguous:
            self.get(dest, part, pe)
            return dest

        at = symmetric("get", "source", part)
        stride, block, n_blocks, size = _blocks("get", part)
        if block == 1:
            iget = library.family("shmem_ctx_iget<N>", size)
            iget(self.handle, address_of(dest), at, 1, stride, n_blocks, pe)
        else:
            ibget = library.family("shmem_ctx_ibget<N>", size)
            ibget(self.handle, address_of(dest), at, block, stride, block, n_blocks, pe)
        return dest


def _source(call: str, dest: np.ndarray, source: Any) -> tuple[np.ndarray, int]:
    """Returns `source` as a contiguous array of as many elements as `dest`, and their bytes."""
    if not isinstance(source, np.ndarray):
        source = np.asarray(source, dest.dtype)
    _check_equal(call, dest, source)
    if not source.flags.c_contiguous:
        source = np.ascontiguousarray(source)
    return source, source.nbytes


def _dest(call: str, dest: np.ndarray, source: np.ndarray) -> int:
    """Returns the bytes of `dest`, a contiguous array of as many elements as `source`."""
    if not isinstance(dest, np.ndarray):
        raise TypeError(f"{call}: argument dest is of type {type(dest).__name__}, not an array")
    _check_equal(call, dest, source)
    flags = dest.flags
    if not (flags.c_contiguous and flags.writeable):
        raise ValueError(
            f"{call}: argument dest is read-only or its elements are not adjacent: get into a new"
            " array, and copy from there"
        )
    return dest.nbytes


def _check_equal(call: str, dest: np.ndarray, source: np.ndarray) -> None:
    if source.dtype is not dest.dtype and source.dtype != dest.dtype:
        raise TypeError(
            f"{call}: argument source has elements of type {source.dtype}, but dest of"
            f" {dest.dtype}: convert by astype"
        )
    if source.dtype.hasobject:
        raise TypeError(f"{call}: elements of type object are addresses of this process alone")
    if source.size != dest.size:
        raise ValueError(
            f"{call}: argument source has {source.size} elements, but dest {dest.size}"
        )


def _signal(call: str, signal: np.ndarray, value: int, op: int) -> int:
    """Returns the address of a signal, after a check of what is done to it."""
    word = element(call, "signal", signal, 0)
    if type_of(call, "signal", signal.dtype)[0] != "uint64":
        raise TypeError(f"{call}: argument signal is of {signal.dtype}, but signals are uint64")
    if not 0 <= integer(call, "value", value) < 2**64:
        raise OverflowError(f"{call}: {value} is too large for uint64, or negative")
    if op not in (SET, ADD):
        raise ValueError(f"{call}: argument op is {op!r}, neither SET nor ADD")
    return word


def _blocks(call: str, part: np.ndarray) -> tuple[int, int, int, str]:
    """Returns how the elements of a part of an array lie: the elements from one block to the next,
    those of a block, the number of blocks, and the bits of an element.

    Raises:
        ValueError: they lie otherwise than as equal blocks at equal distances.
    """
    shape = [n for n in part.shape if n != 1]
    strides = [step for n, step in zip(part.shape, part.strides) if n != 1]
    block = 1
    while strides and strides[-1] == block * part.itemsize:
        block *= shape.pop()
        strides.pop()

    is_regular = (
        len(shape) == 1
        and part.itemsize in (1, 2, 4, 8, 16)
        and strides[0] >= block * part.itemsize
        and strides[0] % part.itemsize == 0
    )
    if not is_regular:
        raise ValueError(
            f"{call}: a part of shape {part.shape} with strides {part.strides} is not one transfer:"
            " its elements are not equal blocks at equal distances. Copy in a loop over its first"
            " axis, or all between its ends, and index the copy"
        )
    return strides[0] // part.itemsize, block, shape[0], str(8 * part.itemsize)
