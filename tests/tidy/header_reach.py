#!/usr/bin/env python3
"""Limits on the number of headers of each layer that a user's file compiles with rl/rl.h.

header_reach.py SOURCE_DIR
"""
import pathlib
import re
import sys

MOST = {"rl/rl.h": {"rl": 60, "runtime": 56}, "runtime/runtime.h": {"runtime": 55}}
INCLUDE = re.compile(r'^\s*#\s*include\s+"((?:rl|runtime)/[^"]+)"', re.M)


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
    for start, layers in MOST.items():
        headers = sorted(reached(root, start))
        for layer, most in layers.items():
            of_layer = [header for header in headers if header.startswith(layer + "/")]
            if len(of_layer) > most:
                print(f"{start} reaches {len(of_layer)} headers of {layer}, more than {most}:", *of_layer, sep="\n  ")
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
