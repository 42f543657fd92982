#!/usr/bin/env python3
"""Markdown has lines of at most 100 columns, but for tables, headings, fenced code, the guide's hidden code, and a line that is one link.

markdown_columns.py SOURCE_DIR
"""
import pathlib
import re
import sys

COLUMNS = 100
NOT_SOURCES = ("build", ".git")
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
HIDDEN_CODE = re.compile(r"<!-- test: hidden [a-z]+$")  # up to a line `-->`: see tests/docs/extract.awk
FREE = re.compile(
    r"\s*\|"  # a row of a table
    r"|#{1,6} "  # a heading, which ends with its line
    r"|\s*(?:(?:[-*+]|\d+[.)]) )?(?:\[[^\]]*\]\(\S+\)|<?https?://\S+)[.,;:]?$"
)


def long_lines(text):
    """(number, length) of each line that is too long and could be wrapped."""
    end = None  # of the code that the line is in
    for number, line in enumerate(text.splitlines(), 1):
        if end:
            if end.fullmatch(line):
                end = None
        elif fence := FENCE.match(line):
            mark = fence.group(1)
            end = re.compile(rf"\s*{re.escape(mark[0])}{{{len(mark)},}}\s*")
        elif HIDDEN_CODE.match(line):
            end = re.compile("-->")
        elif len(line) > COLUMNS and not FREE.match(line):
            yield number, len(line)
    if end:
        yield number, 0


def pages(source):
    for entry in sorted(source.iterdir()):
        if entry.is_dir() and entry.name not in NOT_SOURCES:
            yield from sorted(entry.rglob("*.md"))
        elif entry.suffix == ".md":
            yield entry


def main():
    source = pathlib.Path(sys.argv[1])
    bad = 0
    for page in pages(source):
        for number, length in long_lines(page.read_text()):
            what = f"{length} columns, more than {COLUMNS}" if length else "the code block has no end"
            print(f"{page.relative_to(source)}:{number}: {what}")
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
