"""Loads embedded Python programs as their processes do: parts behind each other in one module."""

import pathlib
import types

SOURCES = pathlib.Path(__file__).resolve().parents[2]


def load(*parts):
    """The module that the parts, such as "rl/reward/python_server.py", make without their main."""
    module = types.ModuleType(pathlib.Path(parts[-1]).stem)
    for part in parts:
        path = SOURCES / part
        exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module
