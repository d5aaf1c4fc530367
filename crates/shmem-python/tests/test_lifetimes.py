"""How arrays, interpreters and jobs end: in any order, by signals, exceptions and forks."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import rushmem.library

# The time limit of a job in seconds, which only ends one that hangs.
LIMIT = 240


def run(program, n=3, launcher_options=(), status=0):
    """Runs a program as a job; returns what it has written to stdout and stderr."""
    command = [sys.executable, "-m", "rushmem", "-n", str(n), *launcher_options, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done.stdout, done.stderr


@pytest.mark.pes(3, timeout=LIMIT)
def test_arrays_are_collected_in_another_order_on_each_pe(job):
    import gc
    import random

    random.seed(job.my_pe())
    before = job.heap_info().used
    for _ in range(100):
        arrays = [job.array(100) for _ in range(100)]
        random.shuffle(arrays)
        cycles = []
        while arrays:
            array = arrays.pop()
            if random.random() < 0.5:
                array.myself = array  # only the collector finds it
            if random.random() < 0.1:
                cycles.append([array, cycles])
            if random.random() < 0.01:
                gc.collect()
    del array, cycles
    gc.collect()
    job.barrier_all()
    job.reclaim()
    assert job.heap_info().used == before


@pytest.mark.pes(2)
def test_a_view_keeps_its_block(job):
    before = job.heap_info().used
    part = job.array((100, 100))[10:20, ::2].T
    job.reclaim()
    assert job.heap_info().used > before
    part[...] = 1
    assert part.base is not None and part.sum() == 500
    del part
    job.reclaim()
    assert job.heap_info().used == before


@pytest.mark.pes(2)
def test_a_full_heap_takes_what_was_released(job):
    size = job.heap_info().total // 4
    for i in range(12):
        x = job.array(size, "i1")
        assert x[0] == 0
        x[0] = x[-1] = 1


@pytest.mark.pes(2)
def test_the_source_of_a_put_lives_until_quiet(job):
    other = (job.my_pe() + 1) % 2
    x = job.array((50, 1000))
    for i in range(50):
        job.put_nbi(x[i], np.full(1000, i + 0.5), other)
    job.barrier_all()
    assert (x == np.arange(50)[:, None] + 0.5).all()
    assert not job.DEFAULT._kept


@pytest.mark.pes(2)
def test_threads_call_at_the_same_time(job):
    assert job.init() == job.THREAD_MULTIPLE
    other = (job.my_pe() + 1) % 2
    x, count, go = job.array((4, 1000), "i8"), job.array(1, "i8"), job.array(4, "i8")

    def work(thread):
        with job.Context(options=job.PRIVATE) as context:
            for i in range(50):
                x.on(other, context)[thread] = 1000 * thread + i
                job.atomic_add(count, 1, other)
            context.quiet()
        go.on(other)[thread] = 1
        job.wait_until(go, "==", 1, index=thread, timeout=60)

    threads = [threading.Thread(target=work, args=[thread]) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    job.barrier_all()
    assert count[0] == 200 and (x == 1000 * np.arange(4)[:, None] + 49).all()


@pytest.mark.pes(2)
def test_other_threads_run_while_one_waits(job):
    x = job.array(1, "i8")
    seen = []
    waiter = threading.Thread(target=lambda: seen.append(job.wait_until(x, "!=", 0)))
    waiter.start()
    for _ in range(1000):
        assert not seen
    job.barrier_all()
    x.on((job.my_pe() + 1) % 2)[0] = 5
    waiter.join()
    assert seen == [5]


@pytest.mark.pes(2)
def test_ctrl_c_ends_a_wait(job):
    x = job.array(1, "i8")
    sent = []

    def interrupt():
        time.sleep(0.3)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    for wait in (
        lambda: job.wait_until(x, "!=", 0),
        lambda: job.wait_until_all(x, "!=", 0, timeout=600),
        lambda: job.wait_until_any(x, "!=", 0),
    ):
        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            wait()
        print("interrupted after", time.monotonic() - sent[-1], "s")
    job.barrier_all()

    # What was interrupted can be done again.
    x.on(1 - job.my_pe())[0] = 1
    assert job.wait_until(x, "!=", 0) == 1


@pytest.mark.pes(3)
def test_ctrl_c_ends_a_collective_and_the_same_call_continues_it(job):
    me, n = job.my_pe(), job.n_pes()
    x, y, all_of_them = job.array(10), job.array(10), job.array(10 * n)
    go = job.array(1, "u8")
    x[:] = me
    for number, call in enumerate(
        [
            job.barrier_all,
            job.sync_all,
            lambda: job.all_reduce(y, x),
            lambda: job.broadcast(y, x, 1),
            lambda: job.fcollect(all_of_them, x),
            lambda: job.alltoalls(all_of_them, all_of_them, 1, 1, 1),
            lambda: job.array(5),
            lambda: job.register(np.ones(5)),
            lambda: job.WORLD.split(0).destroy(),
            job.reclaim,
        ],
        start=1,
    ):
        if me == 1:
            # Until both others are interrupted.
            job.wait_until(go, "==", 2 * number)
        else:
            threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGINT]).start()
            with pytest.raises(KeyboardInterrupt):
                call()
            job.signal(go, 1, 1, job.ADD)
        call()

    job.all_reduce(y, x, job.MAX)
    assert (y == n - 1).all()


HANDLES = """
import os, signal, rushmem as rm
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1) or rm.signal(go, 1, 1))
go = rm.array(1, 'u8')
if rm.my_pe() == 1:
    rm.wait_until(go, '==', 1)
else:
    import threading
    threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGUSR1]).start()
rm.barrier_all()
assert len(seen) == 1 - rm.my_pe()
"""


def test_a_handler_that_raises_nothing_runs_in_a_collective():
    run(HANDLES, n=2)


# SIGINT has its default action on PEs that find no directory.
DEFAULT_ACTION = """
import os, signal, rushmem as rm, rushmem.job
try:
    os.mkdir({directory!r})
except FileExistsError:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
x = rm.array(1)
rm.all_reduce(x, x)
rm.barrier_all()
print(rm.job.started().is_interruptible)
"""


def test_pes_agree_on_how_they_wait(tmp_path):
    program = DEFAULT_ACTION.format(directory=str(tmp_path / "made"))
    assert run(program) == ("True\n" * 3, "")
    assert run(program) == ("False\n" * 3, "")


def test_ctrl_c_at_the_launcher_ends_the_job():
    program = (
        "import rushmem as rm; x = rm.array(1, 'i8'); rm.barrier_all()\n"
        "if not rm.my_pe(): print('waits', flush=True)\n"
        "rm.wait_until(x, '!=', 0)"
    )
    command = [sys.executable, "-m", "rushmem", "-n", "3", "-c", program]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert job.stdout.readline() == "waits\n"
    job.send_signal(signal.SIGINT)
    _, errors = job.communicate(timeout=LIMIT)
    assert job.returncode == 130
    assert errors.count("KeyboardInterrupt") == errors.count("Traceback") == 1, errors


RAISES = """
import rushmem as rm
x = rm.array(1, 'i8')
rm.barrier_all()
if rm.my_pe() == 1:
    raise ValueError('what was raised')
rm.wait_until(x, '!=', 0)
print('a wait ended')
"""


def test_an_exception_ends_the_job_with_its_traceback():
    output, errors = run(RAISES, status=1)
    assert output == ""
    assert errors.startswith("PE 1 of 3:\nTraceback (most recent call last):\n"), errors
    assert "line 6, in <module>" in errors, errors
    assert errors.endswith("ValueError: what was raised\n"), errors


def test_an_exception_of_all_pes_is_printed_once():
    _, errors = run("import rushmem as rm\nx = rm.array(3)\nrm.put(x, x, 9)", n=4, status=1)
    assert errors.count("Traceback") == 1, errors
    assert "line 3, in <module>" in errors
    assert errors.endswith("ValueError: put: argument pe is 9, but the PEs are 0 to 3\n"), errors


def test_a_hook_of_the_program_prints_the_exception():
    hook = "import sys\nsys.excepthook = lambda kind, value, trace: print('hook:', value)\n"
    output, errors = run(hook + RAISES, status=1)
    assert output == "hook: what was raised\n" and "Traceback" not in errors


def test_sys_exit_is_the_status_of_the_job():
    _, errors = run("import sys, rushmem as rm\nrm.my_pe(); sys.exit(3)", status=3)
    assert "Traceback" not in errors


LIVE = """
import atexit, rushmem as rm
x, y = rm.array(1000), rm.array(5, 'i8')
cycle = [x]; cycle.append(cycle)
class Holder:
    def __del__(self): self.held[0] += 1
holder = Holder(); holder.held = y[1:]; holder.myself = holder
request = rm.all_reduce_nb(x, x)
request.wait()
atexit.register(lambda: rm.all_reduce(y, y) or rm.heap_info())
"""


FINALIZED = """
import rushmem as rm
x = rm.array(1000)
rm.finalize()
try: rm.array(3)
except RuntimeError as error: assert 'finalized' in str(error)
"""


def test_an_interpreter_with_live_arrays_exits_silently():
    assert run(LIVE) == ("", "")
    assert run(FINALIZED) == ("", "")
    assert run("import rushmem") == ("", "")


FORK = """
import multiprocessing, os, rushmem as rm
x = rm.array(10); x[:] = rm.my_pe(); rm.barrier_all()
def work(n):
    y = x[n:] + 1          # a child reads what its parent has, and allocates and frees nothing
    return rm.my_pe(), rm.n_pes(), y.sum()
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, [0, 5]) == [(rm.my_pe(), 3, n * (rm.my_pe() + 1)) for n in (10, 5)]
child = os.fork()
if not child:
    del x                  # a child releases nothing
    raise SystemExit(0)    # and finalizes nothing
assert os.waitpid(child, 0)[1] == 0
child = os.fork()
if not child:
    raise ValueError('of a child')   # and ends itself, not the job
assert os.waitpid(child, 0)[1] == 256
rm.barrier_all()
assert (x == rm.my_pe()).all() and x.on(0)[3] == 0
"""


def test_children_of_fork_leave_the_job_alone():
    output, errors = run(FORK)
    assert output == "", errors
    assert errors.count("Traceback") == errors.count("ValueError: of a child\n") == 3, errors


def test_a_program_is_named_by_file_module_or_code(tmp_path):
    (tmp_path / "names.py").write_text("import sys, rushmem as rm\nprint(rm.n_pes(), sys.argv[1:])")
    for name in (["names.py"], ["-m", "names"]):
        command = [sys.executable, "-m", "rushmem", "-n", "2", *name, "-v", "a b"]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"},
        )
        assert done.stdout == "2 ['-v', 'a b']\n" * 2, done
    done = subprocess.run([sys.executable, "-m", "rushmem"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("usage:")


def test_the_launcher_is_that_of_the_library(tmp_path):
    """Also after `pip install --target`, and if the first `oshrun` is that of another library."""
    target, other = tmp_path / "target", tmp_path / "other"
    shutil.copytree(Path(rushmem.__file__).parent, target / "rushmem")
    for file in (target / "lib/librushmem.so.1", target / "bin/oshrun", other / "bin/oshrun"):
        file.parent.mkdir(parents=True)
        file.touch(mode=0o755)

    environment = {**os.environ, "PATH": f"{other}/bin:{os.environ['PATH']}"}
    environment["PYTHONPATH"] = str(target)
    environment.pop("OSHRUN", None)
    program = "import rushmem.library as l; print(l.library_path(), l.launcher_path())"
    command = [sys.executable, "-B", "-c", program]
    paths = subprocess.check_output(command, text=True, env=environment, cwd=tmp_path)
    assert paths.split() == [f"{target}/lib/librushmem.so.1", f"{target}/bin/oshrun"]


def test_a_package_near_the_root_is_imported(monkeypatch):
    monkeypatch.setattr(rushmem.library, "__file__", "/deps/rushmem/library.py")
    monkeypatch.setenv("OSHRUN", "/opt/other/bin/oshrun")
    assert rushmem.library.installation() is None
    assert rushmem.library.launcher_path() == "/opt/other/bin/oshrun"


def test_a_test_that_fails_in_a_pe_fails(tmp_path):
    (tmp_path / "test_fails.py").write_text(
        "import pytest\n\n@pytest.mark.pes(3)\ndef test_one(job):\n"
        "    job.barrier_all()\n    assert job.my_pe() != 1, 'one of them'\n    job.barrier_all()\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "rushmem.testing", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path)
    assert done.returncode == 1 and "1 failed" in done.stdout
    assert "AssertionError: one of them" in done.stdout and "PE 1 of 3:" in done.stdout
