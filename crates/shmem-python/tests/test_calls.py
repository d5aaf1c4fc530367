"""The calls of the package on 3 PEs, each checked by what other PEs then find in their memory."""

import asyncio

import numpy as np
import pytest

pytestmark = pytest.mark.pes(3)


def neighbors(job):
    me, n = job.my_pe(), job.n_pes()
    return me, n, (me + 1) % n, (me - 1) % n


def test_an_assignment_to_another_pe_puts(job):
    me, n, right, left = neighbors(job)
    x = job.array(10, "i8")
    x.on(right)[:] = me
    x.on(np.int64(right))[np.int32(3)] = np.float32(70 + me)
    job.barrier_all()
    assert x.tolist() == [left] * 3 + [70 + left] + [left] * 6


def test_an_index_of_another_pe_gets(job):
    me, n, right, left = neighbors(job)
    x = job.array((2, 3), "i4")
    x[...] = 10 * me + np.arange(6).reshape(2, 3)
    job.barrier_all()

    assert x.on(right)[1, 2] == 10 * right + 5
    assert isinstance(x.on(right)[1, 2], np.int32)
    row = x.on(right)[0]
    assert type(row) is np.ndarray and row.tolist() == [10 * right + i for i in range(3)]
    assert x.on(left)[...].tolist() == (10 * left + np.arange(6).reshape(2, 3)).tolist()


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "f8", "c16"])
def test_strided_parts_are_one_transfer(job, dtype):
    me, n, right, left = neighbors(job)
    x = job.array((6, 8), dtype)
    expected = np.zeros((6, 8), dtype)
    for part in (np.s_[:, 5], np.s_[1:4, 2:5], np.s_[0, ::3], np.s_[5, 1::2]):
        x.on(right)[part] = me + 1
        expected[part] = left + 1
    job.barrier_all()
    assert (x == expected).all()
    for part in (np.s_[:, 5], np.s_[1:4, 2:5], np.s_[0, ::3], np.s_[::2], np.s_[5, 1::2]):
        assert (x.on(me)[part] == expected[part]).all()


def test_parts_that_are_no_transfer_are_refused(job):
    x = job.array((4, 6))
    for part in (np.s_[::-1], np.s_[::2, ::2], np.s_[:, ::-1]):
        with pytest.raises(ValueError, match="not one transfer.*index the copy"):
            x.on(0)[part]
        with pytest.raises(ValueError, match="not one transfer"):
            x.on(0)[part] = 1
    for part in ([0, 2], x > 1, (0, [1, 2]), True):
        with pytest.raises(IndexError, match="index the copy"):
            x.on(0)[part]
    with pytest.raises(ValueError, match="on: argument pe is 3, but the PEs are 0 to 2"):
        x.on(3)
    assert not x.any()


def test_put_and_get_move_arrays(job):
    me, n, right, left = neighbors(job)
    x, y = job.array(1000), np.empty(1000)
    job.put(x, np.arange(1000.0) + me, right)
    job.barrier_all()
    assert (x == np.arange(1000) + left).all()
    job.get(y, x, right)
    assert (y == np.arange(1000) + me).all()

    job.barrier_all()
    job.put_nbi(x[::1], np.full(1000, me + 0.5), right)
    job.quiet(timeout=60)
    job.barrier_all()
    assert (x == left + 0.5).all()
    job.get_nbi(y, x, right)
    job.quiet()
    assert (y == me + 0.5).all()
    job.barrier_all()
    job.put(x[2:4], [1, 2], me)
    assert x[1:5].tolist() == [left + 0.5, 1, 2, left + 0.5]


def test_wrong_arguments_are_exceptions_that_name_them(job):
    x, private = job.array(4), np.zeros(4)
    with pytest.raises(ValueError, match="put: argument pe is 7, but the PEs are 0 to 2"):
        job.put(x, private, 7)
    with pytest.raises(ValueError, match="put: argument dest is in private memory"):
        job.put(private, x, 0)
    with pytest.raises(ValueError, match="put: argument dest is in private memory"):
        job.put(x.copy(), x, 0)
    with pytest.raises(ValueError, match="source has 5 elements, but dest 4"):
        job.put(x, np.zeros(5), 0)
    with pytest.raises(TypeError, match="source has elements of type float32.*astype"):
        job.put(x, private.astype("f4"), 0)
    with pytest.raises(ValueError, match="elements of argument dest are not adjacent"):
        job.put(x[::2], private[:2], 0)
    with pytest.raises(ValueError, match="get: argument dest is read-only or"):
        job.get(private[::2], x[:2], 0)
    with pytest.raises(TypeError, match="put: argument dest is of type list"):
        job.put([1.0], x, 0)
    with pytest.raises(TypeError, match="object"):
        job.array(3, object)
    with pytest.raises(MemoryError, match="SHMEM_SYMMETRIC_SIZE"):
        job.array(1 << 50)


def test_atomic_operations(job):
    me, n, right, left = neighbors(job)
    total, bits, energy = job.array(2, "i8"), job.array(1, "u4"), job.array(1)
    found = [job.atomic_fetch_add(total, np.int64(1), np.int32(0), np.int64(1)) for _ in range(100)]
    assert found == sorted(set(found))
    job.atomic_or(bits, 1 << me, 0)
    job.atomic_add(energy, 0.25, 0)
    job.barrier_all()
    assert job.atomic_fetch(total, 0, 1) == 100 * n and job.atomic_fetch(total, 0) == 0
    assert job.atomic_fetch(bits, 0) == 2**n - 1
    assert job.atomic_fetch(energy, 0) == 0.25 * n
    job.barrier_all()

    assert job.atomic_swap(total, 5, right) == 0
    assert job.atomic_compare_swap(total, 4, 6, right) == 5
    assert job.atomic_compare_swap(total, 5, 6, right) == 5
    job.atomic_set(bits, 0b1100, right)
    assert job.atomic_fetch_and(bits, 0b0110, right) == 0b1100
    assert job.atomic_fetch_xor(bits, 1, right) == 0b100
    job.barrier_all()
    assert (total[0], bits[0]) == (6, 0b101)

    with pytest.raises(OverflowError, match="atomic_set: 4294967296 is too large for uint32"):
        job.atomic_set(bits, 2**32, 0)
    with pytest.raises(TypeError, match="no such operation on elements of float64"):
        job.atomic_or(energy, 1, 0)
    with pytest.raises(IndexError, match="argument index is 2, but array has 2 elements"):
        job.atomic_fetch(total, 0, 2)
    with pytest.raises(ValueError, match="atomic_add: argument pe is -1"):
        job.atomic_add(total, 1, -1)


def test_a_signal_follows_its_elements(job):
    me, n, right, left = neighbors(job)
    x, arrived = job.array(1000, "i8"), job.array(1, "u8")
    for round in range(1, 50):
        job.put_signal(x, np.full(1000, 1000 * round + me), arrived, 1, right, job.ADD)
        assert job.wait_until(arrived, ">=", round) >= round
        assert (x == 1000 * round + left).all()
        job.barrier_all()
    job.signal(arrived, 7, right)
    assert job.wait_until(arrived, "==", 7, timeout=60) == 7
    with pytest.raises(TypeError, match="signals are uint64"):
        job.put_signal(x, x, x[:1], 1, right)


def test_waits_have_limits(job):
    me, n, right, left = neighbors(job)
    x = job.array(4, "i4")
    with pytest.raises(TimeoutError, match="wait_until: has waited 0.01 s"):
        job.wait_until(x, "!=", 0, timeout=0.01)
    with pytest.raises(ValueError, match="argument cmp is '=', not one of"):
        job.wait_until(x, "=", 0)
    with pytest.raises(ValueError, match="argument timeout is -1"):
        job.wait_until(x, "!=", 0, timeout=-1)
    with pytest.raises(OverflowError, match="wait_until: 2147483648 is too large for int32"):
        job.wait_until(x, "<", 2**31)
    with pytest.raises(TypeError, match="of float64, not of"):
        job.wait_until(job.array(1), "!=", 0)
    with pytest.raises(TimeoutError):
        job.wait_until_all(x, ">", 0, timeout=0)
    assert not job.test(x, ">", 0) and job.test(x, "==", 0, index=3)

    job.barrier_all()
    x.on(right)[1::2] = [me + 1, 7]
    assert job.wait_until_any(x, "==", [left + 1] * 4, among=[False, True, True, False]) == 1
    assert job.wait_until_any(x, "==", 7) == 3
    assert sorted(job.wait_until_some(x, ">", 0)) == [1, 3]
    job.wait_until_all(x, ">=", [0, 1, 0, 7], timeout=60)
    assert job.wait_until_any(x, "==", 0, among=[False] * 4) is None


def test_collectives(job):
    me, n, right, left = neighbors(job)
    x, y, all_of_them = job.array(6, "i4"), job.array(6, "i4"), job.array(6 * n, "i4")
    x[:] = np.arange(6) + 10 * me
    of_all = [np.arange(6) + 10 * pe for pe in range(n)]

    job.broadcast(y, x, 1)
    assert (y == of_all[1]).all()
    job.sync_all()
    job.fcollect(all_of_them, x)
    assert (all_of_them == np.concatenate(of_all)).all()
    job.sync_all()
    job.alltoall(y, x)
    assert y.tolist() == [10 * pe + 2 * me + i for pe in range(n) for i in range(2)]
    job.sync_all()
    job.alltoalls(y, x, 1, 2, 1)
    assert y[:3].tolist() == [10 * pe + 2 * me for pe in range(n)]
    job.sync_all()
    job.collect(all_of_them, x[: me + 1])
    expected = [10 * pe + i for pe in range(n) for i in range(pe + 1)]
    assert all_of_them[: len(expected)].tolist() == expected
    job.sync_all()

    for op, expected in [
        (job.SUM, np.sum),
        (job.PROD, np.prod),
        (job.MAX, np.max),
        (job.MIN, np.min),
        (job.BAND, np.bitwise_and.reduce),
        (job.BOR, np.bitwise_or.reduce),
        (job.BXOR, np.bitwise_xor.reduce),
    ]:
        job.all_reduce(y, x, op)
        assert (y == expected(np.array(of_all, "i4"), axis=0)).all(), op
        job.sync_all()
    job.inscan(y, x)
    assert (y == sum(of_all[: me + 1])).all()
    job.sync_all()
    job.exscan(y, x)
    assert (y == sum(of_all[:me], np.zeros(6, "i4"))).all()
    job.sync_all()

    with pytest.raises(ValueError, match="dest has 6 elements, but needs 18"):
        job.fcollect(y, x)
    with pytest.raises(TypeError, match="there is no and of elements of float64"):
        job.all_reduce(job.array(2), job.array(2), job.BAND)
    with pytest.raises(ValueError, match="root is 3, but the members are 0 to 2"):
        job.broadcast(y, x, 3)


def test_collectives_in_tasks(job):
    me, n, right, left = neighbors(job)
    x, y, z = job.array(100), job.array(100), job.array(100)
    word = job.array(1, "i8")
    x[:] = me

    async def put_later():
        await asyncio.sleep(0.01)
        word.on(right)[0] = 1
        await job.quiet_async()

    async def work():
        sums = job.all_reduce_nb(y, x)
        most = job.all_reduce_nb(z, x, job.MAX)
        _, seen = await asyncio.gather(put_later(), job.wait_until_async(word, "!=", 0))
        await sums
        await most
        await job.WORLD.sync_nb()
        return seen

    assert asyncio.run(work()) == 1
    assert (y == n * (n - 1) / 2).all() and (z == n - 1).all()
    job.sync_all()
    job.broadcast_nb(y, x, 2).wait(timeout=60)
    assert (y == 2).all()


def test_a_collective_that_times_out_goes_on(job):
    me, n, right, left = neighbors(job)
    x, y, go = job.array(10), job.array(10), job.array(1, "i8")
    x[:] = me
    if me == 0:
        job.wait_until(go, "==", n - 1)
    sums = job.all_reduce_nb(y, x)
    if me:
        with pytest.raises(TimeoutError, match="all_reduce: has waited 0.001 s"):
            sums.wait(timeout=0.001)
        assert not sums.test()
        job.atomic_add(go, 1, 0)
    sums.wait(timeout=60)
    assert (y == n * (n - 1) / 2).all()


def test_teams(job):
    me, n, right, left = neighbors(job)
    x, y = job.array(1, "i8"), job.array(1, "i8")
    x[0] = 1 + me
    with job.WORLD.split(me % 2, key=-me) as team:
        assert team.n_pes() == len(range(me % 2, n, 2))
        assert team.translate_pe(team.my_pe()) == me
        team.all_reduce(y, x)
        assert y[0] == sum(1 + pe for pe in range(me % 2, n, 2))
        if me % 2 == 0:
            assert team.translate_pe(0) == 2
    assert job.WORLD.split(None if me else 1) is None or me == 0
    odd = job.WORLD.split_strided(1, 1, 2)
    assert (odd is None) == (me == 0)
    row, column = job.WORLD.split_2d(2, 2)
    assert row.n_pes() == (2 if me < 2 else 1)
    assert column.n_pes() == (1 if me == 1 else 2)
    with pytest.raises(ValueError, match="split_strided: the members 1 to 3"):
        job.WORLD.split_strided(1, 1, 3)
    with pytest.raises(ValueError, match="ends with the job"):
        job.WORLD.destroy()
    assert job.SHARED.n_pes() <= job.NODE.n_pes() <= n


def test_contexts_and_sessions(job):
    me, n, right, left = neighbors(job)
    x, count = job.array(100, "i8"), job.array(1, "i8")
    job.barrier_all()
    with job.Context(options=job.SERIALIZED) as context:
        with context.session(total_ops=100):
            for i in range(100):
                context.put_nbi(x[i : i + 1], np.array([me + i]), right)
                context.atomic_add(count, 1, right)
        context.fence()
        context.quiet(timeout=60)
        x.on(left, context)[:1]
    with pytest.raises(ValueError, match="put: the context was destroyed"):
        context.put(x, x, 0)
    job.barrier_all()
    assert count[0] == 100 and (x == left + np.arange(100)).all()


def test_a_lock_has_one_holder(job):
    me, n, right, left = neighbors(job)
    lock, word = job.Lock(), job.array(1, "i8")
    for _ in range(50):
        with lock:
            word.on(0)[0] = word.on(0)[0] + 1
            job.quiet()
    job.barrier_all()
    assert word.on(0)[0] == 50 * n
    job.barrier_all()
    if me == 0:
        lock.acquire()
    job.barrier_all()
    if me:
        with pytest.raises(TimeoutError, match="Lock.acquire"):
            lock.acquire(timeout=0.01)
    job.barrier_all()
    if me == 0:
        lock.release()
    job.barrier_all()


def test_an_array_is_one_of_numpy(job):
    x = job.array((3, 4))
    x += 2
    assert type(x) is type(x[1:]) is type(x.T) is job.Array
    assert type(x + 1) is np.ndarray and (x + 1).sum() == 36
    assert type(np.sqrt(x)) is np.ndarray and isinstance(x.sum(), np.float64)
    assert np.add(x, 1, out=x) is x and x.sum() == 36 and type(x.copy() * 2) is np.ndarray
    assert x.flags.c_contiguous and x.flags.writeable
    assert job.array(()).shape == () and job.array(0).size == 0
    assert job.array(2, [("a", "i4"), ("b", "f8")])["b"].tolist() == [0, 0]
