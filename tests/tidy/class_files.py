#!/usr/bin/env python3
"""The member functions of a class are defined in one .cpp file (and its header): a class that needs two is several classes."""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
from definitions import definitions  # noqa: E402

FOLDERS = ("runtime", "placement", "rl")


def main():
    source = pathlib.Path(sys.argv[1])
    files = collections.defaultdict(lambda: collections.defaultdict(list))
    for folder in FOLDERS:
        for file in sorted((source / folder).rglob("*.cpp")):
            for definition in definitions(file.read_text()):
                if definition.owner and not definition.in_class and not definition.local:
                    files[definition.owner][str(file.relative_to(source))].append(definition.name)
    bad = 0
    for owner, places in sorted(files.items()):
        if len(places) > 1:
            print(f"{owner}: " + ", ".join(f"{file} ({len(names)})" for file, names in places.items()))
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
