"""Symmetric memory: blocks, their release, and the addresses of arrays in them.

A block ends when Python forgets the last array in it. It is then released: the call is local, so
the garbage collector may make it at any time, in another order on each PE. The library frees a
block once all PEs have released it, when an allocation finds no room or by `reclaim`.
"""

from __future__ import annotations

from ctypes import Structure, addressof, byref, c_char, c_size_t
from typing import NamedTuple

import numpy as np

from .job import integer, started
from .library import library
from .requests import meet


class HeapInfo(NamedTuple):
    """Sizes of the symmetric heap of this PE, in bytes."""

    total: int
    used: int
    largest_free: int


class _HeapInfo(Structure):
    _fields_ = [
        ("total", c_size_t),
        ("used", c_size_t),
        ("largest_free", c_size_t),
        ("reserved", c_size_t * 5),
    ]


class Owner:
    """Symmetric memory, of which NumPy makes arrays that keep this object alive."""

    address: int
    nbytes: int

    @property
    def __array_interface__(self) -> dict:
        """The bytes of the memory."""
        return {
            "shape": (self.nbytes,),
            "typestr": "|u1",
            "data": (self.address, False),
            "version": 3,
        }


class Block(Owner):
    """A block of symmetric memory, which is released at the end of this object."""

    def __init__(self, call: str, nbytes: int) -> None:
        """Allocates `nbytes` zeros for `call`. All PEs allocate the same blocks in the same order.

        Raises:
            MemoryError: the heap of a PE has no room; then no PE gets the block.
        """
        meet(call)
        # An array without elements needs an address, too.
        self.nbytes = max(nbytes, 8)
        # ctypes passes a larger number without its upper bits.
        self.address = library.shmem_calloc(min(self.nbytes, 2**64 - 1), 1)
        self._release = library.shmemx_release
        if not self.address:
            raise MemoryError(
                f"{call}: the symmetric heap has no room for {nbytes} bytes (at most"
                f" {heap_info().largest_free}): set SHMEM_SYMMETRIC_SIZE to a larger size"
            )

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._release(self.address)


def reclaim() -> int:
    """Frees the blocks that all PEs have released; all PEs call it. Returns their bytes.

    An allocation that finds no room does this by itself.
    """
    meet("reclaim")
    return library.shmemx_reclaim()


def heap_info() -> HeapInfo:
    """Returns the sizes of the symmetric heap of this PE."""
    started()
    info = _HeapInfo()
    library.shmemx_heap_info(byref(info))
    return HeapInfo(info.total, info.used, info.largest_free)


def address_of(array: np.ndarray) -> int:
    """Returns the address of the first element."""
    try:
        return addressof(c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):
        # Without elements, not contiguous, or read-only.
        return array.__array_interface__["data"][0]


def symmetric(call: str, name: str, array: np.ndarray) -> int:
    """Returns the address of an array in symmetric memory, the argument `name` of `call`.

    Raises:
        TypeError: it is no array.
        ValueError: it is in private memory.
    """
    if not isinstance(array, np.ndarray):
        remedy = ": pass the array, and index= for one element" if np.isscalar(array) else ""
        kind = type(array).__name__
        raise TypeError(f"{call}: argument {name} is of type {kind}, not an array{remedy}")

    owner = array
    while not isinstance(owner, Owner):
        if owner is None:
            # Memory that was shared in another way, as by DLPack, names no owner.
            address = address_of(array)
            if array.size and library.shmem_ptr(address, started().pe):
                return address
            raise ValueError(
                f"{call}: argument {name} is in private memory, which other PEs cannot access:"
                " allocate it by rushmem.array, or copy it into such an array"
            )
        owner = getattr(owner, "base", None)
    if not owner.address:
        raise ValueError(f"{call}: argument {name} is an array that was unregistered")
    return address_of(array)


def contiguous(call: str, name: str, array: np.ndarray) -> int:
    """Returns the address of a contiguous array in symmetric memory, as `symmetric`.

    Arrays of rushmem remember it, unless their elements are not aligned.

    Raises:
        ValueError: also if its elements are not adjacent.
    """
    address = symmetric(call, name, array)
    if not array.flags.c_contiguous:
        raise ValueError(
            f"{call}: the elements of argument {name} are not adjacent (shape {array.shape},"
            f" strides {array.strides}): pass a range, or a copy of the elements"
        )
    if hasattr(array, "_address") and array.flags.aligned:
        array._address = address
    return address


def aligned(call: str, name: str, array: np.ndarray) -> int:
    """Returns the address of a contiguous array as `contiguous`, for a call that needs numbers at
    multiples of their size.

    Raises:
        ValueError: also if they are elsewhere.
    """
    address = contiguous(call, name, array)
    if not array.flags.aligned:
        raise ValueError(
            f"{call}: the elements of argument {name} are not at multiples of their"
            f" {array.itemsize} bytes: pass an array that is, or put and get these"
        )
    return address


def element(call: str, name: str, array: np.ndarray, index: int) -> int:
    """Returns the address of the element with this index, in the order of C.

    Raises:
        IndexError: there is no such element.
    """
    address = getattr(array, "_address", None) or aligned(call, name, array)
    if not index:
        if array.size:
            return address
    # An address is an int, which the sum with an integer of NumPy would not be.
    elif 0 <= (place := integer(call, "index", index)) < array.size:
        return address + place * array.itemsize
    raise IndexError(f"{call}: argument index is {index}, but {name} has {array.size} elements")
