# Calls the function _NAME with arguments from stdin, a JSON value a line. Text and numbers are
# printed as they are, other results as JSON.
import json as _json, sys as _sys

_lines = _sys.stdin.read().strip()
_arguments = [_json.loads(_line) for _line in _lines.split("\n")] if _lines else []
_function = globals().get(_NAME) or getattr(Solution(), _NAME)
_given = _function(*_arguments)
_plain = isinstance(_given, (str, int, float)) and not isinstance(_given, bool)
print(_given if _plain else _json.dumps(_given))
