"""Atomic operations, the calls of a context on one element.

The element is that of `array` with `index`, counted in the order of C, on PE `pe`. Arrays are of 32
or 64-bit integers; `atomic_fetch`, `atomic_set`, `atomic_swap`, `atomic_add` and `atomic_fetch_add`
also take float32 and float64. All raise

    ValueError: `pe` is no PE, or the array is private.
    IndexError: it has no such element.
    TypeError: its type has no such operation, or the value is none of its type.
    OverflowError: the value is too large for its type.
"""

from __future__ import annotations

from typing import Callable, Union

import numpy as np

from .job import check_pe, integer
from .library import library, type_of
from .memory import element

Number = Union[int, float]

# The limits of integers. Floating-point numbers have none.
LIMITS = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
FLOATS = ("float", "double")

# The operations on floating-point numbers; those of `shmemx_` are no part of the standard.
OF_FLOATS = {
    "fetch": "shmem",
    "set": "shmem",
    "swap": "shmem",
    "add": "shmemx",
    "fetch_add": "shmemx",
}

# The functions that were used, by operation and type, with the limits of their values.
_functions: dict[tuple[str, str], tuple[Callable, "tuple[int, int] | None"]] = {}


class Atomics:
    """The part of a context that changes single elements."""

    handle: int
    n_pes: int

    def atomic_fetch(self, array: np.ndarray, pe: int, index: int = 0) -> Number:
        """Returns the element."""
        function, address = self._operation("fetch", array, pe, index)
        return function(self.handle, address, pe)

    def atomic_set(self, array: np.ndarray, value: Number, pe: int, index: int = 0) -> None:
        """Sets the element to `value`."""
        function, address = self._operation("set", array, pe, index, value)
        function(self.handle, address, value, pe)

    def atomic_swap(self, array: np.ndarray, value: Number, pe: int, index: int = 0) -> Number:
        """Sets the element to `value`, and returns what it was."""
        function, address = self._operation("swap", array, pe, index, value)
        return function(self.handle, address, value, pe)

    def atomic_compare_swap(
        self, array: np.ndarray, cond: int, value: int, pe: int, index: int = 0
    ) -> int:
        """Sets the element to `value` if it is `cond`, and returns what it was."""
        self._operation("compare_swap", array, pe, index, cond)
        function, address = self._operation("compare_swap", array, pe, index, value)
        return function(self.handle, address, cond, value, pe)

    def atomic_add(self, array: np.ndarray, value: Number, pe: int, index: int = 0) -> None:
        """Adds `value`."""
        function, address = self._operation("add", array, pe, index, value)
        function(self.handle, address, value, pe)

    def atomic_fetch_add(self, array: np.ndarray, value: Number, pe: int, index: int = 0) -> Number:
        """Adds `value`, and returns what the element was."""
        function, address = self._operation("fetch_add", array, pe, index, value)
        return function(self.handle, address, value, pe)

    def atomic_and(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> None:
        """Combines the element with `value` by a bitwise and."""
        function, address = self._operation("and", array, pe, index, value)
        function(self.handle, address, value, pe)

    def atomic_or(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> None:
        """Combines the element with `value` by a bitwise or."""
        function, address = self._operation("or", array, pe, index, value)
        function(self.handle, address, value, pe)

    def atomic_xor(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> None:
        """Combines the element with `value` by a bitwise exclusive or."""
        function, address = self._operation("xor", array, pe, index, value)
        function(self.handle, address, value, pe)

    def atomic_fetch_and(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> int:
        """As `atomic_and`, and returns what the element was."""
        function, address = self._operation("fetch_and", array, pe, index, value)
        return function(self.handle, address, value, pe)

    def atomic_fetch_or(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> int:
        """As `atomic_or`, and returns what the element was."""
        function, address = self._operation("fetch_or", array, pe, index, value)
        return function(self.handle, address, value, pe)

    def atomic_fetch_xor(self, array: np.ndarray, value: int, pe: int, index: int = 0) -> int:
        """As `atomic_xor`, and returns what the element was."""
        function, address = self._operation("fetch_xor", array, pe, index, value)
        return function(self.handle, address, value, pe)

    def _operation(
        self, op: str, array: np.ndarray, pe: int, index: int, value: Number = 0
    ) -> tuple[Callable, int]:
        """Returns the function of an operation, and the address of the element."""
        address = element(f"atomic_{op}", "array", array, index)
        if pe.__class__ is not int or not 0 <= pe < self.n_pes:
            check_pe(f"atomic_{op}", pe, self.n_pes)
        key = (op, array.dtype.str)
        function, limits = _functions.get(key) or _function(op, array.dtype)
        if limits and (value.__class__ is not int or not limits[0] <= value <= limits[1]):
            _check_value(f"atomic_{op}", value, limits, array.dtype)
        return function, address


def _check_value(call: str, value: object, limits: tuple[int, int], dtype: np.dtype) -> None:
    if not limits[0] <= integer(call, "value", value) <= limits[1]:
        raise OverflowError(f"{call}: {value} is too large for {dtype}")


def _function(op: str, dtype: np.dtype) -> tuple[Callable, "tuple[int, int] | None"]:
    """Returns the function of an operation on a type, and remembers it."""
    c_name, c_type = type_of(f"atomic_{op}", "array", dtype)
    limits = LIMITS.get(c_name)
    if limits is None and (c_name not in FLOATS or op not in OF_FLOATS):
        raise TypeError(f"atomic_{op}: there is no such operation on elements of {dtype}")

    prefix = "shmem" if limits else OF_FLOATS[op]
    if op.startswith("fetch_"):
        pattern, op_of_pattern = f"{prefix}_ctx_<T>_atomic_fetch_<op>", op[len("fetch_") :]
    elif op in ("fetch", "swap", "compare_swap"):
        pattern, op_of_pattern = f"{prefix}_ctx_<T>_atomic_{op}", ""
    else:
        pattern, op_of_pattern = f"{prefix}_ctx_<T>_atomic_<op>", op
    function = library.family(pattern, c_name, op_of_pattern, c_type)
    _functions[op, dtype.str] = function, limits
    return function, limits
