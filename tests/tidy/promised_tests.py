#!/usr/bin/env python3
"""Every test that a table of promises in docs/guide names is there.

promised_tests.py SOURCE_DIR

A table of promises has "promise" in its first heading and "test" in its last. Tests are named as `Suite.Name`; `Suite.*`
is all of them, and `.Name` or `Name` one of the suite before.
"""
import pathlib
import re
import sys

TEST = re.compile(r"\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)")
NAMED = re.compile(r"(?:([A-Z]\w*)?\.)?([A-Z]\w*|\*)")


def tests(root):
    found = set()
    for file in sorted((root / "tests").rglob("*.cpp")):
        found.update(TEST.findall(file.read_text()))
    return found


def rows(page):
    """The last cell of each row of the page's tables of promises, with its line."""
    is_promised = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if not line.startswith("|"):
            is_promised = False
        elif not is_promised:
            is_promised = "promise" in cells[0] and cells[-1] == "test"
        elif not cells[-1].startswith("---"):
            yield number, cells[-1]


def missing(cell, known):
    suite = None
    for quoted in re.findall(r"`([^`]+)`", cell):
        named = NAMED.fullmatch(quoted)
        if not named or "." not in quoted and suite is None:
            continue  # a folder, a file
        suite = named[1] or suite
        if not any(of == suite and named[2] in ("*", name) for of, name in known):
            yield f"{suite}.{named[2]}"


def main():
    source = pathlib.Path(sys.argv[1])
    known = tests(source)
    bad = 0
    for page in sorted((source / "docs/guide").glob("*.md")):
        for number, cell in rows(page):
            gone = list(missing(cell, known))
            if "`" not in cell:
                gone.append("no test")
            for name in gone:
                print(f"{page.relative_to(source)}:{number} names {name}, which is not there")
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
