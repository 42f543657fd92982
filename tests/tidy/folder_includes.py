#!/usr/bin/env python3
"""Includes and forward declarations point down from folder to folder.

A file includes headers of its own folder, and of the folders of the libraries below its library.
The DEPS in CMakeLists.txt name these, directly or by way of others. A library of several folders may include
among these only downwards, in the order in which FOLDERS names them.
A type that a file declares without defining it is defined in such a folder, too, if it is one of the tree's.

    folder_includes.py SOURCE_FOLDER
"""
import collections
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "support"))
from declared_types import declared_types  # noqa: E402


def libraries(text: str) -> dict[str, tuple[list[str], list[str]]]:
    """Name of each library: its folders, lowest first, and the libraries that it depends on."""
    found = {}
    for call in re.finditer(r"starling_(?:library|program)\(([^)]*)\)", re.sub(r"#[^\n]*", "", text)):
        words = call.group(1).replace('"', " ").split()
        lists: dict[str, list[str]] = {"FOLDERS": [], "DEPS": []}
        current = None
        for word in words[1:]:
            if word in ("FOLDERS", "DEPS", "SCHEMAS", "APART"):
                current = lists.setdefault(word, [])
            elif current is not None:
                current.append(word)
        found[words[0]] = (lists["FOLDERS"], lists["DEPS"])
    return found


# Libraries that other files of .cmake make, by the library whose folder theirs is next to.
APART = {"rl/data/arrow": "rl_data"}


def reachable(name: str, all_of: dict[str, tuple[list[str], list[str]]]) -> set[str]:
    """Folders of the libraries below `name`."""
    folders: set[str] = set()
    open_names, seen = list(all_of[name][1]), set()
    while open_names:
        library = open_names.pop()
        if library in seen or library not in all_of:
            continue
        seen.add(library)
        folders.update(all_of[library][0])
        open_names.extend(all_of[library][1])
    return folders


def files(root: pathlib.Path) -> list[tuple[pathlib.Path, str]]:
    """Each source file, with its folder."""
    return [(file, str(file.parent.relative_to(root))) for layer in ("runtime", "placement", "rl")
            for file in sorted((root / layer).rglob("*")) if file.suffix in (".h", ".cpp", ".cu", ".inc")]


def upward_declarations(root: pathlib.Path, allowed: dict[str, set[str]]) -> int:
    """Prints the declarations of types that only folders define which the declaring one may not include."""
    places: dict[str, set[str]] = collections.defaultdict(set)
    declarations = []
    for file, folder in files(root):
        for declared in declared_types(file.read_text()):
            if declared.is_definition:
                places[declared.name].add(folder)
            else:
                declarations.append((file, folder, declared))
    bad = 0
    for file, folder, declared in declarations:
        defined = places.get(declared.name)
        if defined and not defined & allowed.get(folder, set()):
            print(f"{file.relative_to(root)}:{declared.line}: {folder} may not declare {declared.name}: "
                  f"it is of {', '.join(sorted(defined))}, which is no folder below (CMakeLists.txt)")
            bad += 1
    return bad


def main(root: pathlib.Path) -> int:
    all_of = libraries((root / "CMakeLists.txt").read_text())
    allowed: dict[str, set[str]] = {}
    for name, (folders, _) in all_of.items():
        below = reachable(name, all_of)
        for place, folder in enumerate(folders):
            if folder in below:
                print(f"{name}: its folder {folder} is also one of a library that it depends on")
                return 1
            allowed[folder] = below | set(folders[: place + 1])
    for folder, library in APART.items():
        allowed[folder] = {folder, *all_of[library][0]} | reachable(library, all_of)
    bad = upward_declarations(root, allowed)
    for file, folder in files(root):
        for line, text in enumerate(file.read_text().splitlines(), 1):
            if re.match(r'\s*#\s*include\s*"\.\.?/', text):
                print(f"{file.relative_to(root)}:{line}: a path from the source folder, please")
                bad += 1
            include = re.match(
                r'\s*#\s*include\s*["<]((?:runtime|placement|rl)(?:/[^">]+)?)/[^/">]+[">]', text)
            if not include or ".capnp.h" in text:  # generated from a schema
                continue
            if folder not in allowed:
                print(f"{file.relative_to(root)}: no library of CMakeLists.txt has its folder")
                bad += 1
                break
            if include.group(1) not in allowed[folder]:
                print(f"{file.relative_to(root)}:{line}: {folder} may not include "
                      f"{include.group(1)}: it is no folder below (CMakeLists.txt)")
                bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
