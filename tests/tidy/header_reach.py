#!/usr/bin/env python3
"""A limit on the number of rl's headers that a user's file compiles with rl/rl.h.

header_reach.py SOURCE_DIR
"""
import pathlib
import re
import sys

MOST = {"rl/rl.h": 60}
INCLUDE = re.compile(r'^\s*#\s*include\s+"(rl/[^"]+)"', re.M)


def reached(root, start):
    found, waiting = {start}, [start]
    while waiting:
        for header in INCLUDE.findall((root / waiting.pop()).read_text()):
            if header not in found:
                found.add(header)
                waiting.append(header)
    return found - {start}


def main():
    root = pathlib.Path(sys.argv[1])
    bad = 0
    for start, most in MOST.items():
        headers = reached(root, start)
        if len(headers) > most:
            print(f"{start} reaches {len(headers)} headers of rl, more than {most}:", *sorted(headers), sep="\n  ")
            bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
