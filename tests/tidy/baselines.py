#!/usr/bin/env python3
"""The tables of docs/performance.md have one form, and their rows a source.

A row names a file of bench/baseline with the first digits of the commit that the file has. A "+" after them says, in both, that the
tree had changes that no commit has. Under "Measured by hand" a row names a commit alone, or that there is none, and the text before the
table names the command. Every file of bench/baseline has a row.

    baselines.py SOURCE_DIR
"""
import json
import pathlib
import re
import sys

COLUMNS = ["what", "ours", "peer", "floor or target", "machine", "commit"]
BY_HAND = "## Measured by hand"
DIGITS = 8  # of a commit, on the page
SOURCE = re.compile(r"`(\w+\.json)`: ([0-9a-f]{8}\+?)")
COMMIT = re.compile(r"[0-9a-f]{8}\+?|not recorded")
COMMAND = re.compile(r"`(?:bench_|bench/|starling)[^`]*`", re.S)


def shown(commit):
    """How the page has it."""
    return commit.rstrip("+")[:DIGITS] + ("+" if commit.endswith("+") else "")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def faults(page, baselines):
    """(line, what is wrong); `baselines`: the commit of each file by its name."""
    machines, named, by_hand = {"not recorded"}, set(), False
    text, header = "", None  # since the last heading; of the table that the line is in
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("#"):
            by_hand, text = by_hand or line == BY_HAND, ""
        if not line.startswith("|"):
            text, header = text + line + "\n", None
            continue
        row = cells(line)
        if header is None:
            header = row
            if header[0] == "what" and header != COLUMNS:
                yield number, f"a table of the columns {', '.join(header)}"
            if by_hand and not COMMAND.search(text):
                yield number, "a table whose command the text before it does not name"
        elif set(row[0]) <= set("-:"):
            continue
        elif header[0] == "Machine":
            machines.update(row[0].split(", "))
        elif header == COLUMNS:
            if row[4] not in machines:
                yield number, f"no machine '{row[4]}'"
            source = SOURCE.fullmatch(row[5])
            if by_hand:
                if not COMMIT.fullmatch(row[5]):
                    yield number, f"'{row[5]}' is no commit"
            elif not source or source[1] not in baselines:
                yield number, f"'{row[5]}' is no file of bench/baseline with its commit"
            elif source[2] != shown(baselines[source[1]]):
                yield number, f"{source[1]} is of {shown(baselines[source[1]])}, not of {source[2]}"
            if source:
                named.add(source[1])
    for name in sorted(set(baselines) - named):
        yield 0, f"no row has bench/baseline/{name}"


def main():
    root = pathlib.Path(sys.argv[1])
    baselines = {path.name: json.loads(path.read_text())["commit"] for path in (root / "bench/baseline").glob("*.json")}
    found = list(faults((root / "docs/performance.md").read_text(), baselines))
    for number, what in found:
        print(f"docs/performance.md:{number}: {what}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
