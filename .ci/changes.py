"""Files that a change touches, and files that include others. For CI's other programs."""
import collections
import os
import pathlib
import re
import subprocess

# A .cu file is compiled by nvcc alone.
SUFFIXES = (".h", ".cpp", ".inc", ".capnp", ".cu")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


def lines_of(*command: str) -> list[str]:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


def is_there(commit: str) -> bool:
    asked = ["git", "rev-parse", "-q", "--verify", commit]
    return subprocess.run(asked, capture_output=True).returncode == 0


def root_to_compare(program: str, base: str) -> pathlib.Path | None:
    """The project's root, where the program goes on. None: there is no such commit, which is said."""
    root = pathlib.Path(lines_of("git", "rev-parse", "--show-toplevel")[0])
    os.chdir(root)
    if is_there(base):
        return root
    print(f"{program}: there is no {base}; nothing to compare with")
    return None


def changed_files(base: str) -> list[str]:
    """Those that are compiled or included; relative to the root, as all names here."""
    names = lines_of("git", "diff", "--name-only", "--diff-filter=d", base)
    return [name for name in names if name.endswith(SUFFIXES)]


def files_of(root: pathlib.Path, *patterns: str) -> list[str]:
    """Those that git knows, or would if they were added."""
    names = lines_of("git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
                     *patterns)
    return [name for name in dict.fromkeys(names) if (root / name).is_file()]


class Includes:
    """Who includes what, by the text of all files."""

    def __init__(self, root: pathlib.Path):
        self.users: dict[str, list[str]] = collections.defaultdict(list)
        self.included: dict[str, list[str]] = collections.defaultdict(list)
        for name in files_of(root, *("*" + suffix for suffix in SUFFIXES)):
            for included in dict.fromkeys(INCLUDE.findall((root / name).read_text())):
                if included.endswith(".capnp.h"):  # generated
                    included = included.removesuffix(".h")
                if not (root / included).exists():
                    included = str(pathlib.PurePosixPath(name).parent / included)
                self.users[included].append(name)
                self.included[name].append(included)

    def of(self, file: str) -> list[str]:
        return self.users.get(file, [])

    def reached_from(self, files: list[str], folder: str) -> list[str]:
        """The files, and what of the folder they include, directly or not."""
        reached, queue = dict.fromkeys(files), list(files)
        while queue:
            for name in self.included.get(queue.pop(), []):
                if name.startswith(folder) and name not in reached:
                    reached[name] = None
                    queue.append(name)
        return list(reached)
