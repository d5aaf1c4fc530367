"""The programs of `examples` print what they should, on 4 PEs."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize(
    "program, output",
    [
        ("heat", "total heat 48752.5"),
        ("histogram", "4000 values, 77 in the fullest bin"),
        ("own_array", "parameters [1. 2. 3.]"),
        ("sample_sort", "40000 numbers are sorted"),
    ],
)
def test_an_example_prints(program, output):
    command = [sys.executable, "-m", "rushmem", "-n", "4", str(EXAMPLES / f"{program}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.stdout, done.stderr) == (output + "\n", "")
