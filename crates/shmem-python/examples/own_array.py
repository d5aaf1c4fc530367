"""A program that has its arrays already, here parameters and their gradient: their means over all
PEs, in place."""

import numpy as np
import rushmem as rm

me, n = rm.my_pe(), rm.n_pes()
data = np.random.default_rng(me).random((1000, 3))
target = data @ [1.0, 2.0, 3.0]
parameters, gradient = np.zeros(3), np.zeros(3)

with rm.register(gradient) as shared:
    for step in range(100):
        gradient[:] = data.T @ (data @ parameters - target) / len(data)
        rm.all_reduce(shared, shared)
        parameters -= gradient / n
if me == 0:
    print("parameters", parameters.round(2))
