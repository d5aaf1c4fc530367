"""Arrays of the program as symmetric memory, on 3 PEs."""

import numpy as np
import pytest

from rushmem.library import library

pytestmark = pytest.mark.pes(3)


def test_arrays_of_the_program_become_symmetric(job):
    if not hasattr(library._handle, "shmemx_buffer_register"):
        with pytest.raises(NotImplementedError, match="shmemx_buffer_unregister: it is older"):
            job.register(np.zeros(10))
        return

    me, n = job.my_pe(), job.n_pes()
    right, left = (me + 1) % n, (me - 1) % n
    junk = [np.ones(100 + 7 * me) for _ in range(10 * me)]  # other addresses on each PE
    large, small = np.arange(100_000.0) + me, np.zeros((30, 100))
    before = small.ctypes.data

    with job.register(large) as x, job.register(small) as y:
        assert (x == np.arange(100_000) + me).all() and type(x) is job.Array
        y.on(right)[:, 0] = np.arange(30) + me
        job.barrier_all()
        assert (small[:, 0] == np.arange(30) + left).all()
        assert (x.on(right)[:] == np.arange(100_000) + right).all()
        job.barrier_all()
        job.all_reduce(x, x)
        job.barrier_all()
    assert (large == n * np.arange(100_000) + sum(range(n))).all()
    assert small.ctypes.data == before and (small[:, 0] == np.arange(30) + left).all()
    assert len(junk) == 10 * me


class Tensor:
    """What another library's tensor is to this package."""

    def __init__(self, memory):
        self.memory = memory

    def __dlpack__(self, **options):
        return self.memory.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.memory.__dlpack_device__()


class TensorOfPyTorch(Tensor):
    def data_ptr(self):
        return self.memory.ctypes.data

    def numpy(self):
        return self.memory


def tensors():
    yield TensorOfPyTorch
    if np.from_dlpack(Tensor(np.zeros(1))).flags.writeable:
        yield Tensor
    try:
        import torch
    except ImportError:
        return
    yield torch.from_numpy


@pytest.mark.parametrize("tensor", list(tensors()))
def test_tensors_of_dlpack_become_symmetric(job, tensor):
    me, n = job.my_pe(), job.n_pes()
    memory = np.full(1000, float(me))
    with job.register(tensor(memory)) as x:
        job.all_reduce(x, x)
        assert (memory == n * (n - 1) / 2).all()
        job.barrier_all()
        x.on((me + 1) % n)[0] = me
        job.barrier_all()
        assert memory[0] == (me - 1) % n


def test_what_cannot_be_registered_is_refused(job):
    for array, error in [
        ([1.0], TypeError),
        (np.array([None]), TypeError),
        (np.zeros(10)[::2], ValueError),
        (np.broadcast_to(1.0, 3), ValueError),
    ]:
        with pytest.raises(error, match="register: "):
            job.register(array)


def test_an_old_library_is_named(job):
    pattern = "shmemx_no_such_routine"
    library._signatures[pattern] = ("-", "")
    with pytest.raises(NotImplementedError, match="has no shmemx_no_such.* older than this"):
        getattr(library, pattern)
