"""Compares calls of the package `rushmem` with those of shmem4py, in turn, in one process.

    oshrun -n 2 python benches/python_calls.py

Prints for each call the time on the CPU in both packages, the smallest of 7 runs, and their ratio.
"""

import time

import numpy as np
import rushmem as rm
from shmem4py import shmem

me, n = rm.my_pe(), rm.n_pes()
other = (me + 1) % n


def seconds(call, times):
    """Returns the time of `call` on the CPU, in the median of its turns."""
    begin = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - begin) / times


def compare(name, ours, theirs, times=20000):
    turns = [(seconds(ours, times), seconds(theirs, times)) for _ in range(7)]
    mine, its = (min(column) for column in zip(*turns))
    if me == 0:
        print(
            f"{name:<28}{1e9 * mine:10.0f} ns {1e9 * its:10.0f} ns  {mine / its:5.2f}", flush=True
        )
    rm.barrier_all()


one, one4 = rm.array(1), shmem.zeros(1, dtype="f8")
word, word4 = rm.array(1, "i8"), shmem.zeros(1, dtype="i8")
value, many = np.ones(1), np.ones(1 << 17)
large, large4 = rm.array(1 << 17), shmem.zeros(1 << 17, dtype="f8")
got = np.empty(1)

compare("put of 8 bytes", lambda: rm.put(one, value, other), lambda: shmem.put(one4, value, other))
compare("get of 8 bytes", lambda: rm.get(got, one, other), lambda: shmem.get(got, one4, other))
compare(
    "atomic_fetch",
    lambda: rm.atomic_fetch(word, other),
    lambda: shmem.atomic_fetch(word4, other),
)
compare(
    "atomic_fetch_add",
    lambda: rm.atomic_fetch_add(word, 1, other),
    lambda: shmem.atomic_fetch_add(word4, 1, other),
)
compare(
    "x.on(pe)[0] = v, or p",
    lambda: one.on(other).__setitem__(0, 1.0),
    lambda: shmem.put(one4, np.full(1, 1.0), other),
)
compare(
    "put of 1 MiB", lambda: rm.put(large, many, other), lambda: shmem.put(large4, many, other), 100
)
compare("x[5] of own memory", lambda: large[5], lambda: large4[5])
compare("x[1:9] of own memory", lambda: large[1:9], lambda: large4[1:9])
private, plain = np.zeros(1 << 17), np.asarray(large)
compare("a[1:9], a = np.asarray(x)", lambda: plain[1:9], lambda: private[1:9])
compare("x += 1 of own memory", lambda: large.__iadd__(1), lambda: large4.__iadd__(1), 100)
