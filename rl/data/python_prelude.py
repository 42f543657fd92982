"""The common beginning of the child programs of PythonChild.

Programs follow it in the same module. They write answers to `told`, one a line, and use plain(),
config_of(), load_class() and reasons().
"""

import importlib
import importlib.util
import inspect
import os
import sys
import traceback


def fall_silent():
    """Detaches a copy that the user's code forked and that may come back here.

    Its parent reads the requests and answers them.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 3)
    os.close(nowhere)


class Section(dict):
    """A section of the configuration, where a class expects OmegaConf's."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    @classmethod
    def of(cls, value):
        if isinstance(value, dict):
            return cls({key: cls.of(item) for key, item in value.items()})
        return [cls.of(item) for item in value] if isinstance(value, list) else value


def config_of(tree):
    try:
        from omegaconf import OmegaConf

        return OmegaConf.create(tree)
    except ImportError:
        return Section.of(tree)


def plain(value):
    """What JSON has a form for; None for anything else."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__module__.startswith("torch"):
        return None
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    return None


def load_class(path, name):
    if path.startswith("pkg://"):
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(path[len("pkg://") :])
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location("custom_module", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["custom_module"] = module
        spec.loader.exec_module(module)
    made = getattr(module, name, None)
    if not inspect.isclass(made):
        classes = [
            name
            for name, value in vars(module).items()
            if inspect.isclass(value) and value.__module__ == module.__name__
        ]
        raise LookupError(
            f"{path} has no class '{name}'" + (f"; it has {', '.join(classes)}" if classes else "")
        )
    return made


def reasons(error):
    """Of what this program raises itself the words alone."""
    frames = traceback.extract_tb(error.__traceback__)
    own = isinstance(error, (LookupError, TypeError)) and all(
        frame.filename == "<string>" for frame in frames
    )
    return str(error) if own else "".join(traceback.format_exception(*sys.exc_info()))[-4000:]


if __name__ == "__main__":
    told = os.fdopen(3, "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)  # what is printed goes to stderr
    sys.dont_write_bytecode = True  # nothing is left next to a user's files
    os.register_at_fork(after_in_child=fall_silent)
