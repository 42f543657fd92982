#!/usr/bin/env python3
"""Compiles the C++ files that a change touches with clang, and runs clang-tidy on them.

    check_change.py BUILD_FOLDER [BASE]

BASE is the commit before the change (default: the parent of the present one). Flags come from
BUILD_FOLDER/compile_commands.json, by way of the batches that files are compiled in. A header is
checked by the source file next to it, or else by a few that include it. The same goes for a schema;
a list of keys (.inc) is checked by all that include it. Prints the time. What no source file checks
is named. What has no turn within CHECK_SECONDS (600) is named, and fails as a fault does: the exit
code is 1.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

from changes import Includes, changed_files, root_to_compare

INCLUDERS = 2  # of a header without a source file, or a schema
KEPT = ("-I", "-D", "-std", "-m")


def flags_by_file(build: pathlib.Path, root: pathlib.Path) -> dict[str, list[str]]:
    """Of each source file, relative to the root: what matters to a front end."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        words, flags = shlex.split(entry["command"]), []
        for word, following in zip(words, words[1:] + [""]):
            if word in ("-isystem", "-idirafter"):
                flags += [word, following]
            elif word.startswith(KEPT):
                flags.append(word)
        file = pathlib.Path(entry["directory"], entry["file"])
        sources = [file]
        if "/Unity/unity_" in str(file):
            sources = [pathlib.Path(name) for name in
                       re.findall(r'^#include "(.*)"', file.read_text(), re.MULTILINE)]
        for source in sources:
            if source.is_relative_to(root):
                found[str(source.relative_to(root))] = flags
    return found


def sources_that_include(file: str, known: dict[str, list[str]], includes: Includes) -> list[str]:
    """The nearest ones: those that include it, or else what includes it."""
    users, seen = includes.of(file), {file}
    while users:
        sources = [name for name in users if name in known]
        if sources:
            # Each user of a list makes something else of it.
            return sources if file.endswith(".inc") else sources[:INCLUDERS]
        seen.update(users)
        above = [name for user in users for name in includes.of(user)]
        users = [name for name in dict.fromkeys(above) if name not in seen]
    return []


def sources_for(changed: list[str], known: dict[str, list[str]],
                includes: Includes) -> tuple[list[str], list[str]]:
    """The source files by which the changed ones are checked, and the changed ones without any."""
    wanted, unchecked = [], []
    for file in changed:
        source = file[:-2] + ".cpp"
        if file in known:
            sources = [file]
        elif file.endswith(".h") and source in known:
            sources = [source]
        else:
            sources = sources_that_include(file, known, includes)
        wanted += sources
        if not sources:
            unchecked.append(file)
    return list(dict.fromkeys(wanted)), unchecked


def check(file: str, flags: list[str]) -> str:
    """What clang and clang-tidy say; empty: nothing."""
    warnings = ["-Wall", "-Wextra", "-Wshadow-uncaptured-local", "-Wno-unused-parameter",
                "-Wno-unused-lambda-capture", "-Wno-missing-field-initializers", "-Werror"]
    said = ""
    for command in (["clang++", "-fsyntax-only", *flags, *warnings, file],
                    ["clang-tidy", "--quiet", file, "--", *flags]):
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            said += run.stdout + run.stderr
    return said


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    base = sys.argv[2] if len(sys.argv) > 2 else "HEAD^"
    root = root_to_compare("check_change", base)
    if root is None:
        return 0
    known = flags_by_file(build, root)
    files, unchecked = sources_for(changed_files(base), known, Includes(root))
    end = time.monotonic() + float(os.environ.get("CHECK_SECONDS", "600"))
    begun = time.monotonic()
    left, bad = [], 0

    def one(file: str) -> tuple[str, str | None]:
        return file, (check(file, known[file]) if time.monotonic() < end else None)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, said in pool.map(one, files):
            if said is None:
                left.append(file)
            elif said:
                bad += 1
                print(f"== {file}\n{said}", flush=True)
    print(f"check_change: {len(files) - len(left)} files against {base} by clang and clang-tidy in "
          f"{time.monotonic() - begun:.0f} s, {bad} with faults")
    if unchecked:
        print(f"check_change: no source file of this build has {len(unchecked)} more: "
              f"{' '.join(unchecked)}")
    if left:
        print(f"check_change: no time for {len(left)} more (CHECK_SECONDS): {' '.join(left)}")
    return 1 if bad or left else 0


if __name__ == "__main__":
    sys.exit(main())
