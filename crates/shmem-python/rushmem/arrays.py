"""Arrays in symmetric memory, and the elements of such an array on another PE."""

from __future__ import annotations

from math import prod
from typing import Any, Sequence

import numpy as np

from .contexts import DEFAULT, Context
from .job import check_pe, integer
from .memory import Block, Owner

# What an index that selects by ranges consists of.
_KEYS = (slice, int, np.integer, type(None), type(Ellipsis))
_NO_ARRAY = "x.on(pe) is no array: x.on(pe)[:] gets the elements of the other PE"


def array(shape: int | Sequence[int], dtype: Any = float) -> Array:
    """Allocates an array of zeros on every PE; all PEs allocate the same in the same order.

    Its memory lives as long as the array or a view of it. Its end is local: it waits for no PE.

    Raises:
        MemoryError: the symmetric heap of a PE has no room.
        TypeError: the elements would be Python objects, or the shape is none.
        ValueError: a number of elements is negative.
    """
    dtype = np.dtype(dtype)
    if dtype.hasobject:
        raise TypeError("array: elements of type object are addresses of one process")
    sizes = shape if hasattr(shape, "__iter__") else (shape,)
    shape = tuple(integer("array", "shape", size) for size in sizes)
    if any(size < 0 for size in shape):
        raise ValueError(f"array: argument shape is {shape}, but no size may be negative")

    block = Block("array", prod(shape) * dtype.itemsize)
    return view_of(block, shape, dtype)


def view_of(owner: Owner, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    """Returns an array in the memory of `owner`, from its begin."""
    made = np.ndarray.__new__(Array, shape, dtype, buffer=np.asarray(owner))
    made._address = owner.address
    return made


class Array(np.ndarray):
    """An array of NumPy in symmetric memory. Views of it are such arrays, too; copies and results
    of expressions are ordinary arrays in private memory."""

    # The address of contiguous elements in symmetric memory, once a call has needed it.
    _address: int | None = None

    def on(self, pe: int, context: Context = DEFAULT) -> Remote:
        """Returns the same elements on PE `pe`: `x.on(pe)[a:b] = v` puts, `x.on(pe)[a:b]` gets.

        Raises:
            ValueError, TypeError: `pe` is no PE of the context's team.
        """
        return Remote(self, pe, context)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis."""
        return np.ndarray.strides.__get__(self)

    @strides.setter
    def strides(self, strides: tuple[int, ...]) -> None:
        np.ndarray.strides.__set__(self, strides)
        self._address = None

    def __array_wrap__(
        self, made: np.ndarray, context: object = None, return_scalar: bool = False
    ) -> Any:
        """Returns the result of a function of NumPy: a private array unless it was given one."""
        if made is self:
            return made
        private = np.asarray(made)
        return private if private.ndim else private[()]


class Remote:
    """The elements of an array on another PE. An index selects as for the array itself, and what
    it selects is one transfer, or is refused."""

    __slots__ = ("_array", "_pe", "_context")

    def __init__(self, array: Array, pe: int, context: Context) -> None:
        if pe.__class__ is not int or not 0 <= pe < context.n_pes:
            check_pe("on", pe, context.n_pes)
        self._array = array
        self._pe = pe
        self._context = context

    def __setitem__(self, key: Any, value: Any) -> None:
        """Puts `value`, which is converted and broadcast as by an assignment to the array.

        Raises:
            IndexError: the index is no range, or no element.
            ValueError: the range is not one transfer.
        """
        self._context._put_part(self._part(key), value, self._pe)

    def __getitem__(self, key: Any) -> Any:
        """Gets the elements, as a new private array or a scalar.

        Raises:
            As `__setitem__`.
        """
        part = self._part(key)
        copied = self._context._get_part(part, self._pe)
        return copied if part.ndim or key is Ellipsis else copied[()]

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        """Refuses what would use the object itself as an element."""
        raise TypeError(_NO_ARRAY)

    def __eq__(self, other: object) -> bool:
        """Refuses what NumPy before 1.25 takes for a comparison of two objects."""
        raise TypeError(_NO_ARRAY)

    def _part(self, key: Any) -> np.ndarray:
        """Returns the view of this PE's elements that an index selects."""
        keys = key if isinstance(key, tuple) else (key,)
        for part in keys:
            if isinstance(part, bool) or not isinstance(part, _KEYS):
                raise IndexError(
                    "a list or mask as an index selects elements that are not one transfer: get a"
                    " range and index the copy, x.on(pe)[:][mask], or put them one by one"
                )
        # With an ellipsis NumPy returns a view of a single element, too, and not its value.
        has_ellipsis = any(part is Ellipsis for part in keys)
        return self._array[keys if has_ellipsis else (*keys, ...)]
