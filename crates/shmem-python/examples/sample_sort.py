"""Sorts numbers that are distributed over all PEs, by splitters that all PEs agree on."""

import numpy as np
import rushmem as rm

me, n = rm.my_pe(), rm.n_pes()
NUMBERS = 10_000
numbers = np.sort(np.random.default_rng(me).random(NUMBERS))

samples, all_samples = rm.array(n), rm.array(n * n)
samples[:] = numbers[:: NUMBERS // n][:n]
rm.fcollect(all_samples, samples)
splitters = np.sort(all_samples)[n::n]

parts = np.split(numbers, np.searchsorted(numbers, splitters))
to_each, from_each = rm.array(n, "i8"), rm.array(n, "i8")
to_each[:] = [len(part) for part in parts]
rm.alltoall(from_each, to_each)

received, free = rm.array(n * NUMBERS), rm.array(1, "i8")
for pe, part in enumerate(parts):
    begin = rm.atomic_fetch_add(free, len(part), pe)
    received.on(pe)[begin : begin + len(part)] = part
rm.barrier_all()
mine = np.sort(received[: from_each.sum()])

ends, all_ends = rm.array(2), rm.array(2 * n)
ends[:] = mine[0], mine[-1]
rm.fcollect(all_ends, ends)
assert (np.diff(all_ends) >= 0).all()
if me == 0:
    print(f"{n * NUMBERS} numbers are sorted")
