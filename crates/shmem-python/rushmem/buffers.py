"""Memory that the program has already, as symmetric memory: arrays of NumPy and tensors on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, view_of
from .library import library
from .memory import Owner
from .requests import meet

# The buffers that are registered; their memory must live until they no longer are.
_registered: set[Registration] = set()


class Registration(Owner):
    """A buffer of the program that is symmetric; `with` gives its array, and ends it."""

    def __init__(self, memory: np.ndarray) -> None:
        self.address, self.nbytes = memory.__array_interface__["data"][0], memory.nbytes
        self._memory = memory
        # Looked up before the registration, so that a library without it changes nothing.
        unregister = library.shmemx_buffer_unregister
        if not library.shmemx_buffer_register(self.address, self.nbytes, 0) and self.nbytes:
            raise ValueError(
                f"register: argument array, {self.nbytes} bytes, cannot be made symmetric; a warning"
                " of the library names the PE and the reason"
            )
        self._unregister = unregister
        self.array: Array = view_of(self, memory.shape, memory.dtype)
        _registered.add(self)

    def unregister(self) -> None:
        """Ends the registration; all PEs call it, in the same order. The memory keeps its contents,
        and is private again once no array that shares pages with it is registered. `array` and its
        views must not be used afterwards."""
        if self in _registered:
            meet("unregister")
            _registered.discard(self)
            if self.nbytes:
                self._unregister(self.address)
            self.address, self.array._address = 0, None

    def __enter__(self) -> Array:
        return self.array

    def __exit__(self, *exception: object) -> None:
        # After an exception on one PE the others may not come.
        if exception[0] is None:
            self.unregister()


def register(array: Any) -> Registration:
    """Makes the memory of an array symmetric. All PEs call it, for arrays of equal size.

    `register(a).array` shares the memory of `a`, contents included, and has what an array of
    `rushmem.array` has. `array` is contiguous and writable: an array of NumPy, a tensor of PyTorch
    on the CPU, or what DLPack shares for writing, which needs NumPy 2.1. The memory is kept until
    `unregister`.

    During the call no thread uses the array, and no PE uses a registered one that shares a page
    with it, or with such an array in turn: these move, and what is stored there may be lost.

    Raises:
        ValueError: the array is not contiguous or read-only, or the library refuses its memory.
        TypeError: it is no array, or its elements are Python objects.
        NotImplementedError: the library is older than this function.
    """
    if hasattr(array, "data_ptr"):
        # A tensor of PyTorch. What NumPy 1 gets by DLPack is read-only.
        array = array.numpy()
    elif not isinstance(array, np.ndarray):
        if not hasattr(array, "__dlpack__"):
            raise TypeError(
                f"register: argument array is of type {type(array).__name__}, not an array"
            )
        array = np.from_dlpack(array)
    if array.dtype.hasobject:
        raise TypeError("register: elements of type object are addresses of one process")
    if not array.flags.writeable:
        raise ValueError("register: argument array is read-only: register a copy")
    if not array.flags.c_contiguous:
        raise ValueError(
            "register: the elements of argument array are not adjacent: register the array of which"
            " it is a part, or a copy"
        )
    meet("register")
    return Registration(array)
