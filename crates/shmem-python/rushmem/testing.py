"""A plugin of pytest: a test that uses the fixture `job` runs as a job.

    @pytest.mark.pes(4)
    def test_ring(job):
        x = job.array(1)
        ...

Each PE runs the test in an interpreter of its own, with the other fixtures of its own. `job` is the
module `rushmem`. Without the mark a job has 2 PEs. An exception on one PE ends the job, and the
test fails with what the job has printed. The wheel registers the plugin with pytest.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import rushmem

from . import job as _job
from .library import launcher_path

# Set in the PEs of a test.
_IS_PE = "RUSHMEM_PYTEST_PE"
# The time limit of a job in seconds, unless the mark has `timeout=`.
_LIMIT = 120


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "pes(n, timeout=120): run a test with the fixture `job` on n PEs"
    )


@pytest.fixture
def job():
    """The module `rushmem`, in a test that runs as a job."""
    return rushmem


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a test as a job, or in a PE of this job the test itself."""
    if "job" not in pyfuncitem.fixturenames:
        return None
    if os.environ.get(_IS_PE):
        return _run_in_pe(pyfuncitem)

    mark = pyfuncitem.get_closest_marker("pes")
    n = mark.args[0] if mark and mark.args else 2
    limit = mark.kwargs.get("timeout", _LIMIT) if mark else _LIMIT
    # `oshrun` ends a job that takes too long, so that no PE is left.
    launcher = [str(launcher_path()), "-n", str(n), "--timeout", f"{limit}s"]
    of_test = f"{pyfuncitem.path}::{pyfuncitem.nodeid.split('::', 1)[1]}"
    pytest_of_pe = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider"]
    if not pyfuncitem.config.pluginmanager.has_plugin("rushmem"):
        pytest_of_pe += ["-p", "rushmem.testing"]

    done = subprocess.run(
        [*launcher, *pytest_of_pe, of_test],
        env={**os.environ, _IS_PE: "1"},
        cwd=pyfuncitem.config.invocation_params.dir,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.fail(f"{n} PEs, status {done.returncode}:\n{done.stdout}", pytrace=False)
    return True


def _run_in_pe(test: pytest.Function) -> bool:
    """Runs a test in a PE. An exception ends the job, since other PEs may wait for this one."""
    arguments = {name: test.funcargs[name] for name in test._fixtureinfo.argnames}
    try:
        test.obj(**arguments)
    except Exception:
        _job.abort(*sys.exc_info())
    return True
