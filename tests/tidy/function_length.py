#!/usr/bin/env python3
"""No function has more than 70 lines: it fits a screen, or has parts with names."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
from definitions import definitions  # noqa: E402

FOLDERS = ("runtime", "placement", "rl", "bench", "examples", "tests")
LINES_MAX = 70


def main():
    source = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in FOLDERS:
        for file in sorted((source / folder).rglob("*")):
            if file.suffix not in (".cpp", ".h", ".cu"):
                continue
            for definition in definitions(file.read_text()):
                if definition.lines > LINES_MAX:
                    name = f"{definition.owner}::{definition.name}" if definition.owner else definition.name
                    print(f"{file.relative_to(source)}:{definition.line}: {name} has {definition.lines} lines")
                    bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
