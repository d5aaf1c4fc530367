"""What programs do wrong, or at the edges of what is right, on 2 PEs: each an exception that names
the argument, or the result that NumPy would give."""

import asyncio
import copy
import gc
import pickle

import numpy as np
import pytest

pytestmark = pytest.mark.pes(2)

PAIR = np.dtype([("a", "i4"), ("b", "f8")])


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda job, x: job.put(x, x, job.n_pes() / 2), TypeError, "put: argument pe is 1.0, not"),
        (lambda job, x: job.get(x, x, -1), ValueError, "get: argument pe is -1, but the PEs are"),
        (lambda job, x: x.on(None), TypeError, "on: argument pe is None, not an integer"),
        (lambda job, x: job.atomic_add(x, 1, "0"), TypeError, "atomic_add: argument pe is '0', no"),
        (lambda job, x: job.atomic_add(x, 0.5, 0), TypeError, "atomic_add: argument value is 0.5,"),
        (
            lambda job, x: job.atomic_add(x, 1, 0, (0, 1)),
            TypeError,
            r"index is \(0, 1\), not an int",
        ),
        (
            lambda job, x: job.wait_until(x, ">", 0.5),
            TypeError,
            "argument value is 0.5, not an int",
        ),
        (
            lambda job, x: job.broadcast(x, x, 0.0),
            TypeError,
            "broadcast: argument root is 0.0, not",
        ),
        (lambda job, x: job.wait_until(x, ">", 9, timeout=-1), ValueError, "timeout is -1, not 0"),
        (lambda job, x: job.wait_until(x, ">", 9, timeout=0), TimeoutError, "has waited 0 s"),
        (lambda job, x: job.signal(x.view("u8"), -1, 0), OverflowError, "signal: -1 is too large"),
        (lambda job, x: job.signal(x.view("u8"), 1, 0, 7), ValueError, "signal: argument op is 7"),
        (
            lambda job, x: job.put_signal(x, x, x.view("u8"), 1, 0, 7),
            ValueError,
            "op is 7, neither",
        ),
        (
            lambda job, x: job.array(-1),
            ValueError,
            r"array: argument shape is \(-1,\), but no size",
        ),
        (lambda job, x: job.array(2.5), TypeError, "array: argument shape is 2.5, not an integer"),
        (lambda job, x: job.array((2**32, 2**29 + 1)), MemoryError, "has no room for 18446744108"),
        (lambda job, x: job.array(2, [("a", object)]), TypeError, "elements of type object"),
        (lambda job, x: job.WORLD.split(-5), ValueError, "split: argument color is -5, not 0 or"),
        (lambda job, x: job.collect(x[:3], x), ValueError, "collect: argument dest has 3 elements"),
        (
            lambda job, x: job.put(x[::-1], x, 0),
            ValueError,
            "elements of argument dest are not adj",
        ),
        (lambda job, x: x.on(0)[::-1], ValueError, "not one transfer"),
        (lambda job, x: x.on(0) == x, TypeError, r"x.on\(pe\)\[:\] gets the elements"),
        (lambda job, x: job.put(x, x.on(0), 0), TypeError, r"x.on\(pe\)\[:\] gets the elements"),
        (lambda job, x: np.copyto(x, x.on(0)), TypeError, r"x.on\(pe\)\[:\] gets the elements"),
    ],
)
def test_a_mistake_is_an_exception(job, call, error, message):
    x = job.array(8, "i8")
    with pytest.raises(error, match=message):
        call(job, x)
    assert not x.any()


@pytest.mark.parametrize("dtype", ["f2", "?", "G", "U5", "M8[s]", ">i8", PAIR])
def test_types_without_routines_are_refused(job, dtype):
    x = job.array(3, dtype)
    with pytest.raises(TypeError, match="all_reduce: .* which OpenSHMEM has no routine for: conv"):
        job.all_reduce(x, x)
    with pytest.raises(TypeError, match="atomic_add: .* which OpenSHMEM has no routine for: conv"):
        job.atomic_add(x, 1, 0)


@pytest.mark.parametrize(
    "dtype, value", [("f2", 1.5), ("?", True), (">i8", 258), ("U5", "abc"), (PAIR, (3, 4.5))]
)
def test_types_without_routines_are_copied(job, dtype, value):
    other = 1 - job.my_pe()
    x, y = job.array(3, dtype), job.array(3, dtype)
    x.on(other)[1] = value
    job.barrier_all()
    assert x[1] == np.array(value, dtype) == x.on(other)[1] and x[0] == np.zeros((), dtype)
    job.broadcast(y, x, 0)
    assert (y == x).all()


def test_elements_that_are_not_aligned_are_only_copied(job):
    x = job.array(33, "i1")[1:17].view("i8")
    for call in (
        lambda: job.atomic_add(x, 1, 0),
        lambda: job.wait_until(x, "==", 0),
        lambda: job.wait_until_all(x, "==", 0),
        lambda: job.all_reduce(x, x),
    ):
        with pytest.raises(ValueError, match="are not at multiples of their 8 bytes"):
            call()
    x.on(1 - job.my_pe())[:] = [5, 6]
    job.barrier_all()
    assert x.tolist() == [5, 6]


def test_overlapping_elements_are_copied_as_by_numpy(job):
    me = job.my_pe()
    for n_before, n_after in [(2, 0), (0, 2), (0, 0)]:
        for copy_part in (job.put, job.get):
            x, expected = job.array(10, "i8"), np.arange(10)
            x[:] = expected
            to, source = slice(n_after, 8 + n_after), slice(n_before, 8 + n_before)
            copy_part(x[to], x[source], me)
            expected[to] = expected[source].copy()
            assert (x == expected).all()


def test_arrays_without_elements_or_axes(job):
    me = job.my_pe()
    none, one = job.array(0, "i8"), job.array((), "i8")
    none.on(me)[:] = 5
    job.put_nbi(none, none, me)
    job.all_reduce(none, none)
    job.broadcast(one[None][:0], none, 0)
    assert none.on(me)[:].tolist() == [] and job.array((0, 3)).on(me)[:, 1].shape == (0,)
    one.on(me)[()] = 5
    job.atomic_add(one, 1, me)
    assert one == 6 == one.on(me)[...] and job.wait_until_any(none, "==", 1) is None


def test_copies_are_private_and_other_views_symmetric(job):
    x = job.array(8, "i8")
    job.put(x, np.arange(8), job.my_pe())  # the address is known from now on
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x)), np.zeros_like(x)):
        with pytest.raises(ValueError, match="put: argument dest is in private memory"):
            job.put(made, made, 0)
    assert pickle.loads(pickle.dumps(x)).tolist() == list(range(8))

    for i, view in enumerate(
        [np.asarray(x), np.from_dlpack(x), np.frombuffer(memoryview(x), "i8")]
    ):
        job.put(view[i:], x[i:] + 1, job.my_pe())
    assert x.tolist() == [1, 3, *range(5, 11)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_strides_that_are_set_count(job):
    x = job.array((2, 4), "i8")
    job.put(x, np.zeros((2, 4), "i8"), job.my_pe())
    x.strides = (8, 16)
    with pytest.raises(ValueError, match="elements of argument dest are not adjacent"):
        job.put(x, np.zeros((2, 4), "i8"), job.my_pe())


def test_a_team_that_was_destroyed(job):
    x = job.array(1)
    team = job.WORLD.split(0)
    team.destroy()
    for call in ("all_reduce", "n_pes", "sync", "destroy"):
        with pytest.raises(ValueError, match=f"{call}: the team was destroyed"):
            getattr(team, call)(x, x)
    with pytest.raises(ValueError, match="the team was destroyed"):
        job.Context(team)


def test_memory_that_was_unregistered(job):
    registration = job.register(np.zeros(6))
    x = registration.array
    job.put(x, np.ones(6), job.my_pe())
    registration.unregister()
    registration.unregister()
    with pytest.raises(ValueError, match="put: argument dest is an array that was unregistered"):
        job.put(x, np.ones(6), 0)


def test_tasks_that_are_cancelled(job):
    x, y, word = job.array(1), job.array(1), job.array(1, "i8")
    x[0] = 1

    async def work():
        waiter = asyncio.ensure_future(job.wait_until_async(word, "!=", 0))
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter

        request = job.all_reduce_nb(y, x)
        waiter = asyncio.ensure_future(asyncio.wait_for(request, None))
        await asyncio.sleep(0)
        waiter.cancel()
        await request
        await request
        assert request.test()

    asyncio.run(work())
    assert y[0] == 2


def test_a_request_that_the_program_forgets_is_done(job):
    y = job.array(1000)
    for _ in range(10):
        x = job.array(1000)
        x[:] = 1
        job.all_reduce_nb(y, x)
        del x
        gc.collect()
    job.barrier_all()
    assert (y == 2).all()


def test_a_lock_that_is_held_times_out(job):
    lock = job.Lock()
    if job.my_pe() == 0:
        lock.acquire(timeout=60)
    job.barrier_all()
    if job.my_pe():
        with pytest.raises(TimeoutError, match="Lock.acquire: has waited 0.01 s"):
            lock.acquire(timeout=0.01)
    with pytest.raises(ValueError, match="Lock.acquire: argument timeout is -1"):
        lock.acquire(timeout=-1)
    job.barrier_all()
    if job.my_pe() == 0:
        lock.release()
