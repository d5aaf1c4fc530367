"""A histogram whose bins are distributed over all PEs, which count by atomic operations."""

import numpy as np
import rushmem as rm

me, n = rm.my_pe(), rm.n_pes()
BINS, VALUES = 16, 1000
bins = rm.array(BINS, "i8")  # of bins me * BINS to (me + 1) * BINS
values = np.random.default_rng(me).integers(0, n * BINS, VALUES)

with rm.session(total_ops=VALUES):
    for value in values:
        rm.atomic_add(bins, 1, value // BINS, value % BINS)
rm.barrier_all()

histogram = rm.array(n * BINS, "i8")
rm.fcollect(histogram, bins)
if me == 0:
    print(f"{histogram.sum()} values, {histogram.max()} in the fullest bin")
