"""`python -m rushmem -n 4 program.py ARGUMENT..` runs a Python program as PEs.

It is `oshrun` with the interpreter before the program: what precedes the program are options of
`oshrun`. Instead of a file, `-m MODULE` or `-c CODE` may name the program.
"""

from __future__ import annotations

import os
import sys

from .library import launcher_path


def command(arguments: list[str]) -> list[str]:
    """Returns the command line of `oshrun` for these arguments."""
    for at, argument in enumerate(arguments):
        if argument in ("-m", "-c") or argument.endswith(".py"):
            return [str(launcher_path()), *arguments[:at], sys.executable, *arguments[at:]]
    # Options alone, such as --help.
    return [str(launcher_path()), *arguments]


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("usage: python -m rushmem [OPTION OF oshrun].. PROGRAM.py [ARGUMENT]..")
    line = command(sys.argv[1:])
    try:
        os.execvp(line[0], line)
    except OSError as error:
        sys.exit(f"rushmem: {line[0]} cannot be run: {error.strerror}")
