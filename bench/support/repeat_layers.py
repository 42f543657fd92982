#!/usr/bin/env python3
"""Makes a larger model of a small one: its layers follow one another again until there are enough.

    bench/support/repeat_layers.py FOLDER OUT LAYERS

FOLDER is a Hugging Face folder with one model.safetensors. OUT has what is in it, with LAYERS layers.
The text that it makes means nothing: it is for measuring memory and time.
"""
import json
import pathlib
import re
import shutil
import struct
import sys


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    source, out, layers = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
    config = json.loads((source / "config.json").read_text())
    had = config["num_hidden_layers"]
    data = memoryview((source / "model.safetensors").read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(bytes(data[8:8 + length]))
    metadata = header.pop("__metadata__", {})
    payload, pieces, tensors, at = data[8 + length:], [], {}, 0
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        layer = re.search(r"\.layers\.(\d+)\.", name)
        places = range(int(layer[1]), layers, had) if layer else [None]
        for place in places:
            new_name = name if place is None else name.replace(layer[0], f".layers.{place}.")
            tensors[new_name] = {**tensor, "data_offsets": [at, at + end - begin]}
            pieces.append(payload[begin:end])
            at += end - begin
    shutil.copytree(source, out, ignore=shutil.ignore_patterns("*.safetensors*"))
    (out / "config.json").write_text(json.dumps({**config, "num_hidden_layers": layers}, indent=2))
    text = json.dumps({"__metadata__": metadata, **tensors}).encode()
    text += b" " * (-len(text) % 8)
    with (out / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for piece in pieces:
            file.write(piece)
    return 0


if __name__ == "__main__":
    sys.exit(main())
