#!/usr/bin/env python3
"""Names in unnamed namespaces are unique within a library or a test program, whose files are compiled in batches (docs/adr/0040).

Nor are they those of headers of tests that other files of the batch include, which they would hide. Overloads within one file are
fine, and so are aliases that mean the same everywhere.
"""
import collections
import pathlib
import re
import sys

DECLARATIONS = (
    re.compile(r"(?:template <.*>\s*)?(?:struct|class|enum class|enum|union) (\w+)"),
    re.compile(r"using (\w+) = (.*);"),
    re.compile(r"(?:[\w:<>,*&\[\]]+ )*?[\w:<>,*&\[\] ]+?[ *&](\w+)(?:\[[^\]]*\])* ?(?:=|\{|;|\()"),
)


def libraries(source):
    text = (source / "CMakeLists.txt").read_text()
    for name, folders in re.findall(r"starling_library\((\w+) FOLDERS ((?:[a-z_/]+\s+)+)", text):
        yield name, folders.split()


def test_programs(source):
    """Each with its folder and those whose harness it compiles, too (uses.txt)."""
    for folder in sorted({file.parent for file in source.glob("tests/**/*_test.cpp")}):
        uses = folder / "uses.txt"
        yield str(folder.relative_to(source)), [str(folder.relative_to(source)), *(uses.read_text().split() if uses.is_file() else [])]


def unnamed_namespaces(text):
    """The bodies of a file's unnamed namespaces, without what strings and comments hold."""
    text = re.sub(r'R"(\w*)\(.*?\)\1"', '""', text, flags=re.S)
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|(?<!\d)\'(?:[^\'\\\n]|\\.)*\'', '""', text)
    text = re.sub(r"//.*", "", text)
    for start in re.finditer(r"^namespace \{\n", text, re.M):
        depth = 1
        for brace in re.finditer(r"[{}]", text[start.end():]):
            depth += 1 if brace.group() == "{" else -1
            if depth == 0:
                yield text[start.end():start.end() + brace.start()]
                break


def names_of(text, bodies=unnamed_namespaces):
    """(name, what an alias stands for or None) of what stands in unnamed namespaces of a file."""
    for body in bodies(text):
        for line in body.splitlines():
            if not line or line[0] in " }/#)" or line.startswith(("namespace ", "using enum ", "using namespace ")):
                continue
            for pattern in DECLARATIONS:
                match = pattern.match(line)
                if match:
                    yield match.group(1), match.group(2) if pattern.groups == 2 else None
                    break


def headers_of_tests(source, folder):
    """Those that the files of a folder of tests include."""
    found = set()
    for file in sorted((source / folder).glob("*.cpp")):
        for name in re.findall(r'^#include "([^"]+\.h)"', file.read_text(), re.M):
            for header in (source / name, source / folder / name):
                if header.is_file() and header.is_relative_to(source / "tests"):
                    found.add(header)
    return found


def main():
    source = pathlib.Path(sys.argv[1])
    bad = 0
    for library, folders in [*libraries(source), *test_programs(source)]:
        places = collections.defaultdict(dict)  # name -> file -> alias
        for folder in folders:
            for file in sorted((source / folder).glob("*.cpp")):
                if file.name.endswith("main.cpp") or (file.name.endswith("_test.cpp") and folder != folders[0]):
                    continue
                for name, alias in names_of(file.read_text()):
                    if alias is None or not alias.endswith("::" + name):  # that of another namespace
                        places[name][file.relative_to(source)] = alias
        if library.startswith("tests/"):
            for header in headers_of_tests(source, library):
                for name, alias in names_of(header.read_text(), lambda text: [text]):
                    if name in places:
                        places[name][header.relative_to(source)] = alias
        for name, files in sorted(places.items()):
            aliases = set(files.values())
            if len(files) > 1 and (None in aliases or len(aliases) > 1):
                print(f"{library}: '{name}' is in the unnamed namespaces of {', '.join(map(str, files))}")
                bad = 1
    sys.exit(bad)


if __name__ == "__main__":
    main()
