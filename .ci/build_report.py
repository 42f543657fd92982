#!/usr/bin/env python3
"""The time of a build by target and header: build_report.py BUILD_FOLDER

Prints the seconds of each target: compiling and linking, from ninja's log of the last time that each file was built. Prints
the ten slowest headers, too. A header's cost is the time to parse it by itself, times the number of compiled files that
include it.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import time

PARSED_AT_MOST = 60  # headers that are timed, those of most files times bytes first


def target_of(output):
    match = re.search(r"CMakeFiles/([^/]+)\.dir/", output)
    return match.group(1) if match else "link " + pathlib.PurePath(output).name


def times_by_target(build):
    spans = {}
    for line in (build / ".ninja_log").read_text().splitlines():
        fields = line.split("\t")
        if len(fields) >= 4:
            spans[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    seconds, steps = collections.Counter(), collections.Counter()
    for output, span in spans.items():
        if (build / output).exists():
            seconds[target_of(output)] += span
            steps[target_of(output)] += 1
    return seconds, steps


def files_of_headers(build):
    """For each header, the object files that were compiled with it."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=True).stdout.splitlines()
    users, output = collections.defaultdict(list), None
    for line in lines:
        if line.startswith("    "):
            users[(build / line.strip()).resolve()].append(output)
        elif ":" in line and not line.startswith("ninja:"):
            output = line.split(":")[0]
    return users


def directly_included(source):
    names = set()
    for folder in ("runtime", "placement", "rl", "tests", "bench", "examples"):
        for file in (source / folder).rglob("*"):
            if file.suffix in (".h", ".cpp"):
                names.update(re.findall(r'^#include [<"]([^>"]+)[>"]', file.read_text(errors="replace"), re.M))
    return names


def parse_seconds(header, command, folder):
    words = re.sub(r"^.*?(\S*(?:c\+\+|g\+\+|clang\+\+)\S*) ", r"\1 ", command)
    words = re.sub(r"-include \S+cmake_pch\S*|-Winvalid-pch| -o \S+| -c \S+", "", words)
    began = time.monotonic()
    done = subprocess.run(words + f" -w -fsyntax-only -x c++ -include {header} /dev/null", shell=True, cwd=folder, capture_output=True)
    return time.monotonic() - began if done.returncode == 0 else None


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    source = pathlib.Path(__file__).resolve().parent.parent
    if not (build / ".ninja_log").exists():
        sys.exit(f"error: {build} has no build: run make first")
    seconds, steps = times_by_target(build)
    print(f"{sum(seconds.values()):.0f} s in {sum(steps.values())} steps, as long as each took while others ran")
    print(f"\n{'seconds':>8} {'steps':>6}  target")
    for target, total in seconds.most_common(25):
        print(f"{total:8.1f} {steps[target]:6}  {target}")
    rest = seconds.most_common()[25:]
    if rest:
        print(f"{sum(s for _, s in rest):8.1f} {sum(steps[t] for t, _ in rest):6}  {len(rest)} others")

    commands = {e["output"] if "output" in e else re.search(r" -o (\S+)", e["command"]).group(1): e["command"]
                for e in json.loads((build / "compile_commands.json").read_text())}
    included = directly_included(source)
    candidates = []
    for header, outputs in files_of_headers(build).items():
        if any(str(header).endswith("/" + name) for name in included) and header.exists():
            known = [o for o in outputs if o in commands]
            if known:
                candidates.append((len(known) * header.stat().st_size, header, known))
    candidates = sorted(candidates, key=lambda c: c[0], reverse=True)[:PARSED_AT_MOST]
    costs = []
    for at, (_, header, outputs) in enumerate(candidates):
        print(f"\rparsing headers: {at + 1} of {len(candidates)}", end="", file=sys.stderr, flush=True)
        alone = parse_seconds(header, commands[outputs[0]], build)
        if alone is not None:
            costs.append((alone * len(outputs), alone, len(outputs), header))
    print(file=sys.stderr)
    print(f"\n{'seconds':>8} {'each':>6} {'files':>6}  header (with what it includes; precompiled ones cost a part of it)")
    for total, alone, count, header in sorted(costs, reverse=True)[:10]:
        name = header.relative_to(source) if header.is_relative_to(source) else header
        print(f"{total:8.1f} {alone:6.2f} {count:6}  {name}")


if __name__ == "__main__":
    main()
