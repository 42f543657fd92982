"""Writes the rows of a user's dataset class, one a line. Follows python_prelude.py.

The last line is {"end": true}, or {"error": ...}.
"""

import inspect
import json
import sys


def tokenizer_of(model):
    try:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(model)
    except Exception:
        return None


def row_of(item, number):
    if not isinstance(item, dict):
        raise TypeError(f"row {number} is a {type(item).__name__}, not a dict")
    row = {key: plain(value) for key, value in item.items()}
    row = {key: value for key, value in row.items() if value is not None}
    if "raw_prompt" in row:
        row["prompt"] = row.pop("raw_prompt")
    return row


def main():
    setup = json.loads(sys.argv[1])
    made = load_class(setup["path"], setup["name"])
    given = {
        "data_files": setup["files"],
        "tokenizer": tokenizer_of(setup["model"]),
        "processor": None,
        "config": config_of(setup["config"]),
        "max_samples": setup["max_samples"],
    }
    taken = inspect.signature(made).parameters
    if not any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken.values()):
        given = {name: value for name, value in given.items() if name in taken}
    rows = made(**given)
    items = (
        (rows[i] for i in range(len(rows)))
        if hasattr(rows, "__getitem__") and hasattr(rows, "__len__")
        else iter(rows)
    )
    for number, item in enumerate(items, 1):
        if 0 <= setup["max_samples"] < number:
            break
        told.write(json.dumps(row_of(item, number)) + "\n")
    told.write('{"end": true}\n')


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        told.write(json.dumps({"error": reasons(error)}) + "\n")
    told.flush()
