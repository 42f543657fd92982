"""The classes that a C++ file defines, with their members, found without a compiler, in code that clang-format has laid out."""
import re
from typing import NamedTuple

from definitions import ATTRIBUTE, TYPE, blanked, closing, function_name

ACCESS = re.compile(r"^\s*(public|protected|private)\s*:(?!:)")
OPENERS, CLOSERS = "<({[", ">)}]"


class Class(NamedTuple):
    name: str
    line: int  # from 1: where its head is
    members: int  # data, not static
    private_functions: int
    is_value: bool  # a struct that only holds data: no function changes it


def statements(text, start, end):
    """(head, what ended it) of each statement at the level of a class's body; the text of bodies is left out."""
    at = first = start
    while at < end:
        match = re.compile(r"[{};]").search(text, at, end)
        if match is None:
            return
        at = match.end()
        head = text[first : match.start()]
        if match.group() == "{":
            at = closing(text, match.start())
            opened = head.count("(") > head.count(")")
            initial = re.search(r"[^=!<>]=\s*$", head)
            if opened or initial or not text[match.start() - 1].isspace():  # a default argument, x = {1} or x{1}: it goes on
                text = text[: match.start()] + re.sub(r"[^\n]", " ", text[match.start() : at]) + text[at:]
                continue
            yield head, "{"
            if re.match(r"\s*;", text[at:end]):
                at = text.index(";", at) + 1
            first = at
            continue
        yield head, match.group()
        first = at


def declarators(head):
    """How many variables a statement declares."""
    count, depth = 1, 0
    for letter in head:
        depth += (letter in OPENERS) - (letter in CLOSERS)
        count += letter == "," and depth == 0
    return count


def members(text, start, end, name, is_struct):
    access = "public" if is_struct else "private"
    data = private = changing = 0
    for head, ending in statements(text, start, end):
        while label := ACCESS.match(head):
            access = label.group(1)
            head = head[label.end() :]
        bare = re.sub(r"^template\s*<.*?>\s*(?=\S)", "", ATTRIBUTE.sub("", head).strip(), flags=re.S)
        if not bare or re.match(r"(?:class|struct|union|enum)\b", bare):
            # `struct { ... } name;` and `struct State;` are no data of this class.
            continue
        if re.match(r"(?:using|typedef|friend|static_assert)\b", bare):
            continue
        if (named := function_name(bare)) is not None:
            if not re.search(r"=\s*(?:delete|default)\s*$", bare):
                private += access == "private"
                changing += not re.match(r"static\b|friend\b", bare) and not re.search(r"\)\s*const\b[^()]*$", bare) and named[1] != name
            continue
        if ending == ";" and not re.match(r"(?:inline )?static\b|(?:inline )?constexpr\b", bare):
            data += declarators(bare.split("=")[0] if "=" in bare else bare)
    return data, private, is_struct and changing == 0


def classes(text):
    text = blanked(text)
    for match in re.finditer(r"^[ \t]*(?:template\s*<[^{};]*>\s*)?(class|struct)\s[^{};()=]*(?:\([^{};]*\)[^{};()=]*)?\{", text, re.M):
        head = text[match.start() : match.end() - 1].strip()
        if re.match(r"enum\b", head) or not (found := TYPE.search(re.sub(r"^template\s*<.*?>\s*(?=class|struct)", "", head, flags=re.S))):
            continue
        end = closing(text, match.end() - 1)
        line = text.count("\n", 0, match.end() - len(text[match.start() : match.end()].lstrip())) + 1
        is_struct = match.group(1) == "struct"
        yield Class(found.group(1), line, *members(text, match.end(), end - 1, found.group(1), is_struct))
