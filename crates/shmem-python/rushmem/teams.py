"""Teams: numbered sets of PEs, whose members call collectives.

`WORLD` has all PEs, `SHARED` those that share memory with this one, `NODE` those of its host.
"""

from __future__ import annotations

from ctypes import byref, c_void_p
from typing import Any

from .collectives import Collectives
from .job import integer, started
from .library import library
from .requests import meet

_COLOR_UNDEFINED = -1


class Team(Collectives):
    """A team, of which this PE is a member; the operations of `Collectives` are its methods."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self._n_pes = 0

    def my_pe(self) -> int:
        """Returns the number of this PE in the team."""
        started()
        return library.shmem_team_my_pe(self.handle)

    def n_pes(self) -> int:
        """Returns the number of members."""
        if not self._n_pes:
            started()
            self._n_pes = library.shmem_team_n_pes(self.handle)
        return self._n_pes

    def translate_pe(self, pe: int, other: Team | None = None) -> int | None:
        """Returns the number in `other`, by default the world, of member `pe`; None if it is not
        in both."""
        started()
        found = library.shmem_team_translate_pe(self.handle, pe, (other or WORLD).handle)
        return None if found < 0 else found

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Makes a team of the members that pass the same color, from 0, ordered by `key`. All
        members call; those that pass None get None.

        Raises:
            ValueError, TypeError: the color is negative, or no integer.
        """
        if color is not None and integer("split", "color", color) < 0:
            raise ValueError(f"split: argument color is {color}, not 0 or more, or None")
        meet("split", self.handle)
        made = c_void_p()
        code = _COLOR_UNDEFINED if color is None else color
        library.shmemx_team_split(self.handle, code, key, byref(made))
        return _team(made)

    def split_strided(self, start: int, stride: int, size: int) -> Team | None:
        """Makes a team of the `size` members `start`, `start + stride`, and so on. All members
        call; the others get None.

        Raises:
            ValueError: there are no such members.
        """
        last = start + (size - 1) * stride
        if size < 1 or not (0 <= start < self.n_pes() and 0 <= last < self.n_pes()):
            raise ValueError(
                f"split_strided: the members {start} to {last} are not all of 0 to"
                f" {self.n_pes() - 1}"
            )
        meet("split_strided", self.handle)
        made = c_void_p()
        library.shmem_team_split_strided(self.handle, start, stride, size, None, 0, byref(made))
        return _team(made)

    def split_2d(self, xrange: int, yrange: int) -> tuple[Team | None, Team | None]:
        """Makes the teams of this PE's row and column in a grid of `xrange` columns and `yrange`
        rows. All members call; those outside of the grid get None."""
        meet("split_2d", self.handle)
        row, column = c_void_p(), c_void_p()
        library.shmemx_team_split_2d(self.handle, xrange, yrange, byref(row), byref(column))
        return _team(row), _team(column)

    def destroy(self) -> None:
        """Ends the team; all members call it. The end of a `with` block does, too."""
        if self.handle in (WORLD.handle, SHARED.handle, NODE.handle):
            raise ValueError("destroy: this team ends with the job")
        meet("destroy", self.handle)
        library.shmem_team_destroy(self.handle)
        self.__dict__.clear()
        self.__class__ = _Destroyed

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        # Without an exception on all members, the others would wait here for this one.
        if exception[0] is None:
            self.destroy()


class _Destroyed(Team):
    """A team after its end."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("__class__", "__dict__"):
            return super().__getattribute__(name)
        raise ValueError(f"{name}: the team was destroyed")


def _team(made: c_void_p) -> Team | None:
    return Team(made.value) if made.value else None


WORLD, SHARED, NODE = Team(1), Team(2), Team(3)
