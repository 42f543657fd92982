#!/usr/bin/env python3
"""Every file, folder and member function that the pages about the code name is there, in their pictures, too.

architecture_names.py SOURCE_DIR
"""
import pathlib
import re
import sys

PAGES = ("docs/guide/architecture.md", "docs/guide/where-is.md")
LAYERS = ("runtime", "placement", "rl")
ENDINGS = {".h", ".cpp", ".cu", ".inc", ".capnp"}
PLACEHOLDER = re.compile(r"NAME|\*")
FENCED = re.compile(r"```.*?```", re.S)
IN_PICTURE = re.compile(r"[A-Za-z_]\w*(?:::~?[A-Za-z_]\w*)+|[\w/]+\.(?:h|cpp|inc|capnp)\b|\b(?:[A-Z][a-z]+){2,}\b")


def sources(root):
    return "".join(path.read_text() for layer in LAYERS for path in sorted((root / layer).rglob("*"))
                   if path.suffix in ENDINGS)


def is_member(name, text):
    """Whether `Class::member` is defined, or declared in the class's body."""
    if re.search(re.escape(name) + r"\b", text):
        return True
    owner, member = name.rsplit("::", 1)
    body = re.search(r"(?:class|struct) " + owner.split("::")[-1] + r"\b[^;]*?\{(.*?)\n\};", text, re.S)
    return bool(body) and re.search(r"\b" + re.escape(member) + r"\b", body.group(1)) is not None


def missing(page, text, names, root):
    drawn = {name for picture in FENCED.findall(page) for name in IN_PICTURE.findall(picture)}
    yield from sorted(name for name in drawn if "::" not in name and "." not in name and not re.search(rf"\b{name}\b", text))
    written = set(re.findall(r"`([^`]+)`", FENCED.sub("", page)))
    for quoted in sorted(written | {name for name in drawn if "::" in name or "." in name}):
        if PLACEHOLDER.search(quoted) or " " in quoted:
            continue
        if re.fullmatch(r"[A-Za-z_~:]+(\(\w+\))?", quoted) and "::" in quoted:
            name = quoted.split("(")[0]
            if not is_member(name, text):
                yield name
        elif "/" in quoted or pathlib.PurePath(quoted).suffix in ENDINGS:
            brace = re.fullmatch(r"(.*)\{(.*)\}(.*)", quoted)
            paths = [brace[1] + part + brace[3] for part in brace[2].split(",")] if brace else [quoted]
            yield from (path for path in paths if path not in names and not (root / path).exists())


def main():
    root = pathlib.Path(sys.argv[1])
    text = sources(root)
    names = {path.name for path in root.rglob("*") if "build" not in path.parts and ".git" not in path.parts}
    bad = 0
    for page in PAGES:
        for name in missing((root / page).read_text(), text, names, root):
            print(f"{page} names {name}, which is not there")
            bad = 1
    return bad


sys.exit(main())
