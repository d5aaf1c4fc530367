"""Finds librushmem and declares its functions to ctypes.

`SIGNATURES` has a line for each function or family of functions that the package calls; they are
declared when they are first used. ctypes releases the lock of the interpreter during a call, so
other threads run while one waits.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

# The result and the arguments: `-` nothing, `p` a pointer or handle, `n` size_t, `s` ptrdiff_t,
# `i` int, `l` long, `d` double, `u` uint64_t, `T` a value of the type that <T> names.
SIGNATURES = """
i shmem_init_thread                         ip
- shmem_query_initialized                   p
- shmem_finalize
- shmem_global_exit                         i
i shmem_my_pe
i shmem_n_pes
p shmem_calloc                              nn
p shmem_ptr                                 pi
- shmemx_release                            p
n shmemx_reclaim
- shmemx_heap_info                          p
p shmemx_buffer_register                    pnl
i shmemx_buffer_unregister                  p

- shmem_ctx_putmem                          pppni
- shmem_ctx_getmem                          pppni
- shmem_ctx_putmem_nbi                      pppni
- shmem_ctx_getmem_nbi                      pppni
- shmem_ctx_iput<N>                         pppssni
- shmem_ctx_iget<N>                         pppssni
- shmem_ctx_ibput<N>                        pppssnni
- shmem_ctx_ibget<N>                        pppssnni
- shmem_ctx_putmem_signal                   pppnpuii
- shmem_ctx_signal_set                      ppui
- shmem_ctx_signal_add                      ppui
T shmem_ctx_<T>_atomic_fetch                ppi
T shmem_ctx_<T>_atomic_swap                 ppTi
T shmem_ctx_<T>_atomic_compare_swap         ppTTi
- shmem_ctx_<T>_atomic_<op>                 ppTi
T shmem_ctx_<T>_atomic_fetch_<op>           ppTi
- shmemx_ctx_<T>_atomic_<op>                ppTi
T shmemx_ctx_<T>_atomic_fetch_<op>          ppTi
- shmem_ctx_<T>_atomic_fetch_<op>_nbi       pppTi

i shmem_ctx_create                          lp
i shmem_team_create_ctx                     plp
- shmem_ctx_destroy                         p
- shmem_ctx_fence                           p
- shmem_ctx_session_start                   plpl
- shmem_ctx_session_stop                    p
i shmemx_ctx_quiet_timed                    pd

i shmemx_<T>_wait_until_timed               piTd
i shmemx_<T>_wait_until_all_vector_timed    pnpipd
i shmemx_<T>_wait_until_any_vector_timed    pnpippd
i shmemx_<T>_wait_until_some_vector_timed   pnppippd
- shmem_set_lock                            p
i shmem_test_lock                           p
- shmem_clear_lock                          p

i shmem_team_my_pe                          p
i shmem_team_n_pes                          p
i shmem_team_translate_pe                   pip
i shmem_team_split_strided                  piiiplp
- shmemx_team_split_2d                      piipp
- shmemx_team_split                         piip
- shmem_team_destroy                        p

- shmem_barrier_all
i shmem_team_sync                           p
i shmem_<op>mem                             pppn
i shmem_broadcastmem                        pppni
i shmem_<T>_<op>                            pppn
i shmem_<T>_alltoalls                       pppssn
i shmemx_team_sync_nb                       pp
i shmemx_<op>mem_nb                         pppnp
i shmemx_broadcastmem_nb                    pppnip
i shmemx_<T>_<op>_nb                        pppnp
i shmemx_req_test                           pp
i shmemx_req_wait_timed                     pd
"""

LETTERS = {
    "-": None,
    "p": ctypes.c_void_p,
    "n": ctypes.c_size_t,
    "s": ctypes.c_ssize_t,
    "i": ctypes.c_int,
    "l": ctypes.c_long,
    "d": ctypes.c_double,
    "u": ctypes.c_uint64,
}

# The file name of the library.
LIBRARY = "librushmem.so.1"

# The types of arrays: the name in the routines of C, and the type by which ctypes passes a value.
TYPES = {
    np.dtype(name).str: (c_name, c_type)
    for name, c_name, c_type in [
        ("i1", "int8", ctypes.c_int8),
        ("i2", "int16", ctypes.c_int16),
        ("i4", "int32", ctypes.c_int32),
        ("i8", "int64", ctypes.c_int64),
        ("u1", "uint8", ctypes.c_uint8),
        ("u2", "uint16", ctypes.c_uint16),
        ("u4", "uint32", ctypes.c_uint32),
        ("u8", "uint64", ctypes.c_uint64),
        ("f4", "float", ctypes.c_float),
        ("f8", "double", ctypes.c_double),
        ("c8", "complexf", None),
        ("c16", "complexd", None),
        ("longdouble", "longdouble", None),
    ]
}


class Library:
    """librushmem: each function of `SIGNATURES` is an attribute, or is made by `family`."""

    def __init__(self) -> None:
        self._signatures = {}
        for line in SIGNATURES.split("\n"):
            result, name, *arguments = line.split() or ("", "")
            self._signatures[name] = (result, "".join(arguments))
        self._families: dict[tuple[str, str, str], object] = {}

    def __getattr__(self, name: str):
        """Declares the function of this name, when it is first called."""
        if name == "_handle":
            self._handle = ctypes.CDLL(str(library_path()))
            return self._handle
        function = self._declared(name, name, None)
        setattr(self, name, function)
        return function

    def family(self, pattern: str, c_name: str, op: str = "", c_type: Any = None):
        """Returns the function whose name is `pattern` with `c_name` for <T> or <N>, and `op` for
        <op>. `c_type` is the type of its values."""
        key = (pattern, c_name, op)
        function = self._families.get(key)
        if function is None:
            name = pattern.replace("<T>", c_name).replace("<N>", c_name).replace("<op>", op)
            function = self._families[key] = self._declared(pattern, name, c_type)
        return function

    def _declared(self, pattern: str, name: str, c_type: Any):
        """Returns the function `name`, of the signature of `pattern`. It is an object of its own,
        since one name may occur in two families."""
        try:
            result, arguments = self._signatures[pattern]
        except KeyError:
            raise AttributeError(f"rushmem.library.SIGNATURES has no {pattern}") from None

        letters = {**LETTERS, "T": c_type}
        prototype = ctypes.CFUNCTYPE(letters[result], *(letters[letter] for letter in arguments))
        try:
            return prototype((name, self._handle))
        except AttributeError:
            raise NotImplementedError(
                f"{self._handle._name} has no {name}: it is older than this package"
            ) from None


library = Library()


def library_path() -> Path | str:
    """Returns the path of librushmem: of its installation, otherwise the name by which the loader
    searches."""
    prefix = installation()
    return prefix / "lib" / LIBRARY if prefix else LIBRARY


def launcher_path() -> Path | str:
    """Returns the path of the `oshrun` of the library's installation, otherwise what OSHRUN names,
    otherwise the name that is searched on the PATH."""
    prefix = installation()
    return prefix / "bin" / "oshrun" if prefix else os.environ.get("OSHRUN") or "oshrun"


def installation() -> Path | None:
    """Returns the directory that has the library: that of the environment in which this package is
    installed (DIR/rushmem by `pip --target`, or PREFIX/lib/python3.x/site-packages/rushmem),
    otherwise that of the `oshrun` on the PATH. Other libraries of OpenSHMEM have an `oshrun`,
    too."""
    package = Path(__file__).resolve().parent
    # Four directories up, which a package near the root of the file system does not have.
    found = [package.parent, *list(package.parents)[3:4]]
    oshrun = os.environ.get("OSHRUN") or shutil.which("oshrun")
    if oshrun:
        found.append(Path(oshrun).resolve().parents[1])
    return next((prefix for prefix in found if (prefix / "lib" / LIBRARY).exists()), None)


def type_of(call: str, name: str, dtype: np.dtype) -> tuple[str, object]:
    """Returns the type of an array's elements in C: its name and the type of ctypes."""
    try:
        return TYPES[dtype.str]
    except KeyError:
        raise TypeError(
            f"{call}: argument {name} has elements of type {dtype}, which OpenSHMEM has no"
            " routine for: convert them by astype"
        ) from None
