#!/usr/bin/env python3
"""A class has a name that is unique in its namespace.

Two classes of one name in one program are one to the linker, whatever files they are in: it keeps one destructor of both. Names in
unnamed namespaces are their file's (unique_names.py).

    class_names.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

NAMESPACE = re.compile(r"(?:inline )?namespace ?([\w:]*) \{")
CLASS = re.compile(r"(?:template <.*>\s*)?(?:class|struct|union|enum class|enum) (?:\[\[\w+\]\] )?(\w+)\b(?!::)(?!.*;\s*$)(?!<)")


def classes(text):
    """(namespace, name) of the classes that a file defines outside of unnamed namespaces and other classes."""
    spaces = []
    for line in (re.sub(r" *//(?! namespace).*", "", line) for line in text.splitlines()):
        if line.startswith("}  // namespace") and spaces:
            spaces.pop()
        elif space := NAMESPACE.match(line):
            spaces.append(space.group(1))
        elif (found := CLASS.match(line)) and spaces and "" not in spaces:
            yield "::".join(spaces), found.group(1)


def main():
    source = pathlib.Path(sys.argv[1])
    places = collections.defaultdict(set)
    for folder in ("runtime", "placement", "rl"):
        for file in sorted((source / folder).rglob("*")):
            if file.suffix in (".h", ".cpp", ".cu"):
                for name in classes(file.read_text()):
                    places[name].add(str(file.relative_to(source)))
    bad = 0
    for (space, name), files in sorted(places.items()):
        if len(files) > 1:
            print(f"{space}::{name} is defined in {', '.join(sorted(files))}")
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
