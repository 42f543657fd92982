#!/usr/bin/env python3
"""Child processes are started and waited for by runtime/process alone, by spawn.h: descriptors, signals and the parent's death have one treatment."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
from definitions import blanked  # noqa: E402

FOLDERS = ("runtime", "placement", "rl", "examples")
LIBRARY = "runtime/process/"
CALL = re.compile(
    r"(?<![\w.>])(?:_?[fF]ork|vfork|forkpty|exec[lv]p?e?|execvpe|execveat|fexecve|posix_spawnp?|popen|waitpid|waitid|wait[34])\s*\("
    r"|(?<!\w)(?:std)?::(?:system|daemon)\s*\("
    r"|\bSYS_(?:fork|vfork|clone3?|execve|execveat|waitid|wait4)\b"
)


def main():
    source = pathlib.Path(sys.argv[1])
    bad = 0
    for folder in FOLDERS:
        for file in sorted((source / folder).rglob("*")):
            name = str(file.relative_to(source))
            if file.suffix not in (".cpp", ".h", ".cu") or name.startswith(LIBRARY):
                continue
            text = blanked(file.read_text())
            for match in CALL.finditer(text):
                print(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {match.group()}: use runtime/process/spawn.h")
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
