"""Waits: for elements of this PE that others change, and for what this PE has started.

A wait takes a `timeout` in seconds, after which it raises `TimeoutError` and has changed nothing.
Without one it lasts as long as it must. Ctrl-C and other signals are handled meanwhile. Comparisons
are written as in Python: "==", "!=", ">", ">=", "<", "<=".
"""

from __future__ import annotations

from ctypes import byref, c_char, c_size_t
from typing import Callable, Sequence

import numpy as np

from .atomics import LIMITS
from .job import integer
from .library import library, type_of
from .memory import aligned, element
from .slices import in_slices, polled

COMPARISONS = {"==": 1, "!=": 2, ">": 3, ">=": 4, "<": 5, "<=": 6}


def wait_until(
    array: np.ndarray, cmp: str, value: int, timeout: float | None = None, index: int = 0
) -> int:
    """Waits until an element of this PE compares with `value` as `cmp` says, and returns it.

    `array` is symmetric, of 32 or 64-bit integers; a signal is an array of uint64.

    Raises:
        TimeoutError: that has not come within `timeout` seconds.
        ValueError: the array is private, or there is no such comparison.
        IndexError, TypeError: the array has no such element, or another type.
    """
    look = _look(array, cmp, value, index)
    in_slices("wait_until", look, timeout)
    return array.item(index)


async def wait_until_async(array: np.ndarray, cmp: str, value: int, index: int = 0) -> int:
    """As `wait_until`, while other tasks of asyncio run."""
    await polled(_look(array, cmp, value, index))
    return array.item(index)


def test(array: np.ndarray, cmp: str, value: int, index: int = 0) -> bool:
    """Returns whether an element of this PE compares with `value` as `cmp` says."""
    return _look(array, cmp, value, index)(0.0)


def wait_until_all(
    array: np.ndarray,
    cmp: str,
    values: int | Sequence[int],
    timeout: float | None = None,
    among: np.ndarray | None = None,
) -> None:
    """Waits until all elements compare with `values`: one for all, or one for each.

    `among` is a mask of the elements that count, by default all.

    Raises:
        As `wait_until`.
    """
    call = "wait_until_all"
    c_name, (address, n, status, code, numbers) = _elements(call, array, cmp, values, among)
    wait = library.family(f"shmemx_<T>_{call}_vector_timed", c_name)
    in_slices(call, lambda limit: not wait(address, n, status, code, numbers, limit), timeout)


def wait_until_any(
    array: np.ndarray,
    cmp: str,
    values: int | Sequence[int],
    timeout: float | None = None,
    among: np.ndarray | None = None,
) -> int | None:
    """Waits until one of the elements compares, and returns its index; None if none counts.

    Raises:
        As `wait_until`.
    """
    call = "wait_until_any"
    c_name, (address, n, status, code, numbers) = _elements(call, array, cmp, values, among)
    wait = library.family(f"shmemx_<T>_{call}_vector_timed", c_name)
    found = c_size_t()
    in_slices(
        call,
        lambda limit: not wait(address, n, status, code, numbers, byref(found), limit),
        timeout,
    )
    return found.value if found.value < array.size else None


def wait_until_some(
    array: np.ndarray,
    cmp: str,
    values: int | Sequence[int],
    timeout: float | None = None,
    among: np.ndarray | None = None,
) -> np.ndarray:
    """Waits until at least one of the elements compares, and returns the indices of all that do.

    Raises:
        As `wait_until`.
    """
    call = "wait_until_some"
    c_name, (address, n, status, code, numbers) = _elements(call, array, cmp, values, among)
    wait = library.family(f"shmemx_<T>_{call}_vector_timed", c_name)
    indices, found = np.empty(n, np.uintp), c_size_t()
    at = indices.ctypes.data
    in_slices(
        call,
        lambda limit: not wait(address, n, at, status, code, numbers, byref(found), limit),
        timeout,
    )
    return indices[: found.value].astype(np.intp)


def _look(array: np.ndarray, cmp: str, value: int, index: int) -> Callable[[float], bool]:
    """Returns a function that waits for an element for some seconds, and says if it has come."""
    address = element("wait_until", "array", array, index)
    c_name, c_type = _waitable("wait_until", array)
    code = _code("wait_until", cmp)
    least, most = LIMITS[c_name]
    if not least <= integer("wait_until", "value", value) <= most:
        raise OverflowError(f"wait_until: {value} is too large for {array.dtype}")
    wait = library.family("shmemx_<T>_wait_until_timed", c_name, c_type=c_type)

    def look(limit: float) -> bool:
        # `array` is named here so that its memory lives as long as the function.
        return array is not None and wait(address, code, value, limit) == 0

    return look


def _elements(
    call: str, array: np.ndarray, cmp: str, values: int | Sequence[int], among: np.ndarray | None
) -> tuple[str, tuple]:
    """Returns the type, and the arguments of a wait for several elements in their order: address
    and number, status, comparison, values. Pointers are arrays of ctypes, which keep memory alive.
    """
    address = aligned(call, "array", array)
    c_name, _ = _waitable(call, array)
    numbers = np.empty(array.shape, array.dtype)
    numbers[...] = values

    status = None
    if among is not None:
        if np.shape(among) != array.shape:
            raise ValueError(
                f"{call}: argument among has the shape {np.shape(among)}, but array {array.shape}"
            )
        # The library leaves out elements whose status is not 0.
        status = np.logical_not(among).astype(np.intc)
    return c_name, (address, array.size, _pointer(status), _code(call, cmp), _pointer(numbers))


def _pointer(array: np.ndarray | None) -> object:
    """Returns an array as an argument of ctypes."""
    if array is None:
        return None
    return (c_char * array.nbytes).from_buffer(array) if array.nbytes else None


def _waitable(call: str, array: np.ndarray) -> tuple[str, object]:
    """Returns the type of an array for whose elements a wait is possible."""
    c_name, c_type = type_of(call, "array", array.dtype)
    if c_name not in LIMITS:
        raise TypeError(f"{call}: argument array is of {array.dtype}, not of 32 or 64-bit integers")
    return c_name, c_type


def _code(call: str, cmp: str) -> int:
    try:
        return COMPARISONS[cmp]
    except KeyError:
        raise ValueError(
            f"{call}: argument cmp is {cmp!r}, not one of {', '.join(COMPARISONS)}"
        ) from None
