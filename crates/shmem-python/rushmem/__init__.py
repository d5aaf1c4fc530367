"""OpenSHMEM for Python programs with NumPy.

    import rushmem as rm

    x = rm.array(4)                         # on every PE
    x.on((rm.my_pe() + 1) % rm.n_pes())[:] = rm.my_pe()
    rm.barrier_all()
    print(x)

`python -m rushmem -n 4 program.py` runs a program as 4 PEs.
"""

from .arrays import Array, Remote, array
from .buffers import Registration, register
from .collectives import BAND, BOR, BXOR, MAX, MIN, PROD, SUM, Request
from .contexts import DEFAULT, NOSTORE, PRIVATE, SERIALIZED, Context, barrier_all
from .job import (
    THREAD_FUNNELED,
    THREAD_MULTIPLE,
    THREAD_SERIALIZED,
    THREAD_SINGLE,
    finalize,
    global_exit,
    init,
    my_pe,
    n_pes,
)
from .locks import Lock
from .memory import HeapInfo, heap_info, reclaim
from .teams import NODE, SHARED, WORLD, Team
from .transfers import ADD, SET
from .waiting import (
    test,
    wait_until,
    wait_until_all,
    wait_until_any,
    wait_until_async,
    wait_until_some,
)

# The operations on the default context.
put = DEFAULT.put
get = DEFAULT.get
put_nbi = DEFAULT.put_nbi
get_nbi = DEFAULT.get_nbi
put_signal = DEFAULT.put_signal
signal = DEFAULT.signal
fence = DEFAULT.fence
quiet = DEFAULT.quiet
quiet_async = DEFAULT.quiet_async
session = DEFAULT.session
atomic_fetch = DEFAULT.atomic_fetch
atomic_set = DEFAULT.atomic_set
atomic_swap = DEFAULT.atomic_swap
atomic_compare_swap = DEFAULT.atomic_compare_swap
atomic_add = DEFAULT.atomic_add
atomic_fetch_add = DEFAULT.atomic_fetch_add
atomic_and = DEFAULT.atomic_and
atomic_or = DEFAULT.atomic_or
atomic_xor = DEFAULT.atomic_xor
atomic_fetch_and = DEFAULT.atomic_fetch_and
atomic_fetch_or = DEFAULT.atomic_fetch_or
atomic_fetch_xor = DEFAULT.atomic_fetch_xor

# The collectives of all PEs.
sync_all = WORLD.sync
broadcast = WORLD.broadcast
broadcast_nb = WORLD.broadcast_nb
collect = WORLD.collect
collect_nb = WORLD.collect_nb
fcollect = WORLD.fcollect
fcollect_nb = WORLD.fcollect_nb
alltoall = WORLD.alltoall
alltoall_nb = WORLD.alltoall_nb
alltoalls = WORLD.alltoalls
all_reduce = WORLD.all_reduce
all_reduce_nb = WORLD.all_reduce_nb
inscan = WORLD.inscan
inscan_nb = WORLD.inscan_nb
exscan = WORLD.exscan
exscan_nb = WORLD.exscan_nb
