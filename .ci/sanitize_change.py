#!/usr/bin/env python3
"""Runs the test programs that a change concerns under the sanitizers.

    sanitize_change.py [BASE]

BASE is the commit before the change (default: the parent of the present one). The sanitizers are
AddressSanitizer with UBSan, and ThreadSanitizer. A source file concerns the tests of its folder, or
of the nearest folder above it that has tests. A file of tests concerns the programs that compile or
include it. What has neither, as runtime/runtime.h or a schema, concerns those that include it.

Programs with the most changed files come first. Both sanitizers together take SANITIZE_SECONDS
(1800), the first at most half. What is not looked at is named and counted. Only tests that fail and
programs that cannot be built make the exit code 1.

Nothing is run again until it passes: a race that shows in one of two runs is one.
"""
import collections
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from changes import Includes, changed_files, files_of, root_to_compare

PRESETS = {"asan": "address", "tsan": "thread"}
LAYERS = ("runtime", "placement", "rl")
BUILD_SECONDS_MIN = 30  # with less left, no build is begun
CHUNK = 8               # tests between two looks at the clock
# What tests start or load, and neither link nor build.
HELPERS = ("starling", "starling-config", "starling-reward-host", "starling_arrow", "wall_clock",
           "fake_nccl", "fake_cuda_memory")


@dataclasses.dataclass
class Program:
    """A test program, or a fuzz target."""
    name: str
    prefix: str  # of its tests in ctest; a fuzz target has one test, of that name
    sources: list[str]
    slow: bool = False

    def helpers(self, root: pathlib.Path, includes: Includes) -> list[str]:
        files = includes.reached_from(self.sources, "tests/")
        text = "".join((root / file).read_text() for file in files if (root / file).exists())
        return [name for name in HELPERS if re.search(rf"/{name}[\" ]|{name}\.so\"", text)]


def programs_of(root: pathlib.Path, files: list[str]) -> dict[str, Program]:
    """All, by their names; see starling_tests() and starling_fuzzers() of .cmake/Starling.cmake."""
    by_folder = collections.defaultdict(list)
    for file in files:
        by_folder[str(pathlib.PurePosixPath(file).parent)].append(file)
    found = {}
    for folder, sources in by_folder.items():
        if not folder.startswith("tests/") or not any(s.endswith("_test.cpp") for s in sources):
            continue
        path, used = folder.removeprefix("tests/"), root / folder / "uses.txt"
        if used.exists():
            sources = sources + [source for source in by_folder[used.read_text().strip()]
                                 if not source.endswith("_test.cpp")]
        labels = root / folder / "labels.txt"
        slow = labels.exists() and "slow" in labels.read_text().split()
        name = "test_" + path.replace("/", "_")
        found[name] = Program(name, path + "/", sources, slow)
    for file in by_folder["tests/fuzz"]:
        if file.endswith("_fuzz.cpp"):
            name = pathlib.PurePosixPath(file).stem
            found[name] = Program(name, "fuzz/" + name, [file, "tests/fuzz/driver/replay.cpp"])
    return found


class Concerned:
    """Which programs a file concerns."""

    def __init__(self, root: pathlib.Path, programs: dict[str, Program], includes: Includes):
        self.root, self.programs, self.includes = root, programs, includes
        self.by_source = collections.defaultdict(list)
        for program in programs.values():
            for source in program.sources:
                self.by_source[source].append(program.name)

    def by(self, file: str) -> dict[str, float]:
        """By program: what it counts, at most 1."""
        layer = file.split("/")[0]
        if file.endswith(".cu"):
            return {}
        if layer == "tests":
            return self.by_tests_file(file)
        if layer not in LAYERS:
            return {}
        own = self.of_folder(file)
        return {own: 1.0} if own else self.by_users(file)

    def by_tests_file(self, file: str) -> dict[str, float]:
        own = self.by_source.get(file, [])
        users = self.includes.of(file)
        # tests/support/x.cpp is a library that tests load by its name.
        if file.startswith("tests/support/") and file.endswith(".cpp"):
            stem = pathlib.PurePosixPath(file).stem
            users = [it for it in self.by_source if stem in (self.root / it).read_text()]
        others = {name for user in users for name in self.by_source.get(user, [])}
        return {**{name: 1 / len(others) for name in others}, **dict.fromkeys(own, 1.0)}

    def of_folder(self, file: str) -> str | None:
        for parent in pathlib.PurePosixPath(file).parents:
            name = "test_" + str(parent).replace("/", "_")
            # What lies right in a layer's folder is used by all of the layer.
            if name in self.programs and str(parent) not in LAYERS:
                return name
        return None

    def by_users(self, file: str) -> dict[str, float]:
        """By the tests that include the file, or else by those of the folders that do."""
        if file.endswith(".cpp"):
            file = file[:-4] + ".h"
        users = self.includes.of(file)
        counts = collections.Counter(name for it in users for name in self.by_source.get(it, []))
        if not counts:
            counts = collections.Counter(name for user in users if (name := self.of_folder(user)))
        return {name: count / len(users) for name, count in counts.items()}


def built_by(build: pathlib.Path) -> set[str]:
    """The targets that a build folder has."""
    text = (build / "compile_commands.json").read_text()
    return set(re.findall(r"CMakeFiles/([\w-]+)\.dir/", text))


class Sanitizer:
    """One build, until its time is over."""

    def __init__(self, preset: str, concerned: Concerned, end: float):
        self.preset, self.concerned, self.end = preset, concerned, end
        self.programs = concerned.programs
        self.build = concerned.root / "build" / preset
        self.failed: list[str] = []
        self.left: list[str] = []  # programs, and tests of a program, without their turn
        self.absent: list[str] = []
        self.tests = 0
        self.run_programs = 0
        subprocess.run(["cmake", "--preset", preset, "--log-level=WARNING"], check=True)
        self.targets = built_by(self.build)

    def seconds_left(self) -> float:
        return self.end - time.monotonic()

    def look_at(self, names: list[str]) -> None:
        for name in names:
            if name not in self.targets:
                self.absent.append(name)
            elif self.seconds_left() < BUILD_SECONDS_MIN or not self.make(name):
                self.left.append(name)
            elif name not in self.failed:
                self.run(self.programs[name])

    def make(self, name: str) -> bool:
        """False: there was no time."""
        helpers = self.programs[name].helpers(self.concerned.root, self.concerned.includes)
        helpers = [helper for helper in helpers if helper in self.targets]
        command = ["cmake", "--build", str(self.build), "--target", name, *helpers]
        print(f"sanitize_change: {self.preset}: {name}", flush=True)
        process = subprocess.Popen(command, start_new_session=True)
        try:
            if process.wait(self.seconds_left()) != 0:
                self.failed.append(name)
            return True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()
            return False

    def run(self, program: Program) -> None:
        tests = self.tests_of(program)
        if not tests:
            self.left.append(f"{program.name}, which lists no test")
            return
        self.run_programs += 1
        for first in range(0, len(tests), CHUNK):
            if self.seconds_left() <= 0:
                self.left.append(f"{len(tests) - first} of {len(tests)} tests of {program.name}")
                return
            some = tests[first:first + CHUNK]
            pattern = "|".join(re.sub(r"([.+*?()\[\]^$|\\])", r"\\\1", test) for test in some)
            self.tests += len(some)
            if self.ctest("--output-on-failure", "--timeout", "600", "-j", "2", "-R",
                          f"^({pattern})$").returncode != 0 and program.name not in self.failed:
                self.failed.append(program.name)

    def tests_of(self, program: Program) -> list[str]:
        listed = self.ctest("-N", "-R", f"^{program.prefix}", "-LE", "slow|timing", capture=True)
        names = re.findall(r"^ *Test +#\d+: (\S+)", listed.stdout, re.MULTILINE)
        if not program.prefix.endswith("/"):
            return [name for name in names if name == program.prefix]
        # Not those of the folders below, nor of Python programs.
        return [name for name in names if "." in name and self.prefix_of(name) == program.prefix]

    def prefix_of(self, test: str) -> str:
        return max((it.prefix for it in self.programs.values() if test.startswith(it.prefix)),
                   key=len)

    def ctest(self, *arguments: str, capture: bool = False) -> subprocess.CompletedProcess:
        command = [".ci/run_tests.sh", "ctest", "--test-dir", str(self.build), *arguments]
        return subprocess.run(command, text=True, stdout=subprocess.PIPE if capture else None)


def report(sanitizer: Sanitizer, names: list[str], begun: float) -> None:
    said = [f"{sanitizer.tests} tests of {sanitizer.run_programs} of {len(names)} programs in "
            f"{time.monotonic() - begun:.0f} s"]
    if sanitizer.failed:
        said.append(f"{len(sanitizer.failed)} failed: {' '.join(sanitizer.failed)}")
    if sanitizer.left:
        said.append(f"{len(sanitizer.left)} without a turn: {', '.join(sanitizer.left)}")
    if sanitizer.absent:
        said.append(f"{len(sanitizer.absent)} not built with this sanitizer: "
                    f"{' '.join(sanitizer.absent)}")
    print(f"sanitize_change: {sanitizer.preset}: {'; '.join(said)}", flush=True)


def main() -> int:
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD^"
    root = root_to_compare("sanitize_change", base)
    if root is None:
        return 0
    programs = programs_of(root, files_of(root, "tests/*.cpp", "tests/*.h"))
    concerned, counts, without = Concerned(root, programs, Includes(root)), {}, []
    for file in changed_files(base):
        by_program = concerned.by(file)
        if not by_program:
            without.append(file)
        for name, count in by_program.items():
            counts[name] = counts.get(name, 0) + count
    names = sorted(counts, key=lambda name: (-counts[name], name))
    slow = [name for name in names if programs[name].slow]
    names = [name for name in names if name not in slow]
    if without:
        print(f"sanitize_change: no test program is that of {len(without)} changed files: "
              f"{' '.join(without)}")
    if slow:
        print(f"sanitize_change: {len(slow)} programs are slow, and left to `ctest -L slow`: "
              f"{' '.join(slow)}")
    if not names:
        print(f"sanitize_change: no test program is concerned by what differs from {base}")
        return 0
    end = time.monotonic() + float(os.environ.get("SANITIZE_SECONDS", "1800"))
    failed = 0
    for number, preset in enumerate(PRESETS):
        begun = time.monotonic()
        share = (end - begun) / (len(PRESETS) - number)
        sanitizer = Sanitizer(preset, concerned, begun + share)
        sanitizer.look_at(names)
        report(sanitizer, names, begun)
        failed += len(sanitizer.failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
