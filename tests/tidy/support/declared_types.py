"""The types that a C++ file declares or defines outside of functions, found without a compiler."""
import re
from typing import NamedTuple

from definitions import blanked

SCOPES = re.compile(
    r"\bnamespace\b(?P<namespace>[^{};=]*)\{"
    r"|\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\s*\([^)]*\)\s*)*"
    r"(?P<type>[A-Za-z_][\w:]*)\s*(?:<[^;{}()]*>)?(?:\s*final)?\s*"
    r"(?:(?P<body>(?::[^:;{][^;{]*)?\{)|(?::\s*[\w:]+\s*)?;)"
    r"|[{}]")


class DeclaredType(NamedTuple):
    name: str  # with its namespaces
    line: int  # from 1
    is_definition: bool


def declared_types(text: str) -> list[DeclaredType]:
    """Those of namespaces that have a name; of types within types only the definitions."""
    text = blanked(text)
    found = []
    scopes: list[tuple[str, str]] = []  # (kind, name): of namespaces, types and other braces
    for match in SCOPES.finditer(text):
        if match.group() == "{":
            scopes.append(("other", ""))
        elif match.group() == "}":
            if scopes:
                scopes.pop()
        elif match["namespace"] is not None:
            name = re.sub(r"\[\[.*?\]\]|\binline\b", "", match["namespace"]).strip()
            scopes.append(("namespace", name) if name else ("other", ""))
        else:
            kinds = {kind for kind, _ in scopes}
            is_definition = match["body"] is not None
            if "other" not in kinds and (is_definition or "type" not in kinds):
                name = "::".join([name for _, name in scopes] + [match["type"]])
                found.append(DeclaredType(name, text.count("\n", 0, match.start("type")) + 1, is_definition))
            if is_definition:
                scopes.append(("type", match["type"]))
    return found
