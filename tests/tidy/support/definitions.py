"""The functions that a C++ file defines, found without a compiler, in code that clang-format has laid out."""
import re
from typing import NamedTuple

SKIPPED = re.compile(
    r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"'  # a raw string
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"  # 1'000 has no character
    r"|//[^\n]*|/\*.*?\*/"
    r"|^[ \t]*#(?:\\\n|[^\n])*",  # a directive of the preprocessor
    re.S | re.M,
)
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|alignas\([^)]*\)")
TYPE = re.compile(r"(?:^|[\s>])(?:class|struct|union)\s+(?:\w+\s+)*?((?:\w+::)*\w+)(?:<[^{}]*>)?\s*(?:final\s*)?(?::(?!:).*)?$", re.S)
NAME = re.compile(r"((?:\w+(?:<[^()]*>)?::)*)(operator\W+|operator [\w:]+|~?\w+)\s*$")


class Definition(NamedTuple):
    owner: str  # the class, with the namespaces that have a name; empty for a free function
    name: str
    line: int  # from 1: where its head starts
    lines: int
    in_class: bool  # defined where the class is
    local: bool  # in an unnamed namespace: another file's class of that name is another one


class Scope(NamedTuple):
    kind: str  # namespace, class
    name: str


def blanked(text):
    """The text with spaces for comments, strings and directives; lines and places stay."""
    return SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(text, at):
    """The place behind the brace that closes the one at `at`."""
    depth = 0
    for match in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return len(text)


def function_name(head):
    """(class, name) of a function with this head, or None where it is none."""
    head = ATTRIBUTE.sub("", head)
    depth = 0
    at = head.find("operator()")
    start = at + len("operator()") if at >= 0 else 0
    for match in re.compile(r"[<>(]").finditer(head, start):
        if match.group() == "<":
            depth += 1
        elif match.group() == ">":
            depth -= head[match.start() - 1] != "-" and depth > 0
        elif depth == 0:
            found = NAME.search(head[: match.start()])
            if found is None or "=" in head[: found.start()].split("operator")[0]:
                return None
            return re.sub(r"<[^()]*>", "", found.group(1)).rstrip(":"), found.group(2).strip()
    return None


def definitions(text):
    text = blanked(text)
    scopes = []
    start = 0  # of what the next brace or semicolon ends
    at = 0
    while match := re.compile(r"[{};]").search(text, at):
        at = match.end()
        if match.group() == ";":
            start = at
            continue
        if match.group() == "}":
            if scopes:
                scopes.pop()
            start = at
            continue
        head = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", text[start : match.start()])
        bare = head.strip()
        inside = head.count("(") > head.count(")")  # a default argument, or a lambda that is passed on
        if inside or not text[match.start() - 1].isspace():  # x{1}: an initializer
            at = closing(text, match.start())
            continue
        if re.match(r"(?:inline )?namespace\b|$", bare):
            name = re.sub(r"(?:inline )?namespace", "", bare).strip()
            scopes.append(Scope("namespace", name))
            start = at
            continue
        if re.match(r"(?:template\s*<.*>\s*)?(?:class|struct|union)\b", bare, re.S) and (found := TYPE.search(bare)):
            scopes.append(Scope("class", found.group(1)))
            start = at
            continue
        end = closing(text, match.start())
        named = function_name(head)
        if named is None:  # an enumeration, or a value with braces
            at = end
            continue
        first = start + len(text[start:]) - len(text[start:].lstrip())
        line = text.count("\n", 0, first) + 1
        classes = [scope.name for scope in scopes if scope.kind == "class"]
        namespaces = [scope.name for scope in scopes if scope.kind == "namespace" and scope.name]
        local = any(scope.kind == "namespace" and not scope.name for scope in scopes)
        owner = classes + ([named[0]] if named[0] else [])
        yield Definition(
            "::".join(namespaces + owner) if owner else "",
            named[1],
            line,
            text.count("\n", first, end) + 1,
            bool(classes),
            local,
        )
        at = start = end
