#!/usr/bin/env python3
"""No class has more than 20 private functions or 20 data members: what has more is several classes.

One that keeps more says why in the comment at the class: "Size: ...", "... than other classes" or
"hence their number". Fields of values count, too.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
from classes import classes  # noqa: E402

FOLDERS = ("runtime", "placement", "rl", "examples")
COUNT_MAX = 20
REASON = re.compile(r"\bSize: \w|than other classes|hence their number")


def comment_at(lines, line):
    """The comment right above a line, from 1."""
    text = []
    for above in reversed(lines[: line - 1]):
        if not re.match(r"\s*(//|template\b)", above):
            break
        text.append(above.strip().lstrip("/").strip())
    return " ".join(reversed(text))


def main():
    source = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in FOLDERS:
        for file in sorted((source / folder).rglob("*")):
            if file.suffix not in (".cpp", ".h", ".cu"):
                continue
            text = file.read_text()
            for one in classes(text):
                if max(one.members, one.private_functions) <= COUNT_MAX:
                    continue
                if REASON.search(comment_at(text.splitlines(), one.line)):
                    continue
                print(
                    f"{file.relative_to(source)}:{one.line}: {one.name} has {one.members} data members and "
                    f"{one.private_functions} private functions: take a part out, or say why (Size: ...)"
                )
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
