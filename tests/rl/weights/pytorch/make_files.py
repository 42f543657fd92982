#!/usr/bin/env python3
"""Makes the files next to it with the real torch.save, and expected.json with what they hold.

    make_files.py [OPT_FIXTURE OUT.bin]

With arguments it converts an OPT checkpoint in safetensors to a pytorch_model.bin as transformers 4 wrote it (tests/rl/model/opt_pytorch).
The files in the tree were made with torch 2.15.0.
"""
import collections
import json
import os
import pathlib
import sys
import zipfile

import torch

HERE = pathlib.Path(__file__).parent


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.embedding = torch.nn.Embedding(4, 3)
        self.head = torch.nn.Linear(3, 4, bias=False)
        self.head.weight = self.embedding.weight  # tied
        self.register_buffer("steps", torch.tensor(7))


class Evil:
    def __reduce__(self):
        return os.system, ("echo this must never run",)


def tensors():
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6) / 8
    out = collections.OrderedDict()
    for dtype in ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64"]:
        values = torch.tensor([[0, 1, 2], [3, 4, 100]])
        out["kinds." + dtype] = values.to(getattr(torch, dtype))
    out["negative"] = torch.tensor([-1.5, -0.0, 3e38])
    out["scalar"] = torch.tensor(2.5)
    out["empty"] = torch.empty(0, 5)
    out["transposed"] = base.t()
    out["transposed.half"] = base.to(torch.float16).t()
    out["rows"] = base[1:3]
    out["columns"] = base[:, 2:5]
    out["every_other"] = base[::2, 1::3]
    out["permuted"] = torch.arange(24, dtype=torch.bfloat16).reshape(2, 3, 4).permute(2, 0, 1)
    out["one_row_expanded"] = torch.arange(5.0).expand(1, 5)
    out["parameter"] = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    out["名"] = torch.tensor([1.0])
    return out


def values(tensor):
    return {"shape": list(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch."), "values": tensor.detach().to(torch.float64).flatten().tolist()}


def recompress(source, target, method):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", method) as new:
        for name in old.namelist():
            new.writestr(zipfile.ZipInfo(name), old.read(name), compress_type=method)


def main():
    torch.manual_seed(0)
    expected = {}

    def save(name, what, **options):
        torch.save(what, HERE / name, **options)
        if all(isinstance(value, torch.Tensor) for value in what.values()):
            expected[name] = {key: values(tensor) for key, tensor in what.items()}

    save("tensors.bin", tensors())
    save("module.bin", Module().state_dict())
    save("protocol4.bin", dict(tensors()), pickle_protocol=4)
    save("protocol5.bin", dict(tensors()), pickle_protocol=5)
    save("shard1.bin", {"a": torch.tensor([1.0, 2.0])})
    save("shard2.bin", {"b": torch.tensor([[3.0], [4.0]]), "c": torch.tensor([5.0])})
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False))

    # What must be refused.
    torch.save(tensors(), HERE / "refused_legacy.bin", _use_new_zipfile_serialization=False)
    torch.save({"a": torch.ones(2), "run": Evil()}, HERE / "refused_code.bin")
    torch.save(Module(), HERE / "refused_module.bin")
    torch.save({"model": {"a": torch.ones(2)}, "step": 3}, HERE / "refused_nested.bin")
    torch.save([torch.ones(2)], HERE / "refused_list.bin")
    torch.save(torch.ones(2), HERE / "refused_tensor.bin")
    torch.save({"a": torch.ones(2).to(torch.float8_e4m3fn)}, HERE / "refused_float8.bin")
    torch.save({"a": torch.eye(2).to_sparse()}, HERE / "refused_sparse.bin")
    torch.save({"a": torch.ones(2, dtype=torch.complex64)}, HERE / "refused_complex.bin")
    torch.save({"a": torch.ones(1).expand(1 << 40)}, HERE / "refused_expanded.bin")
    recompress(HERE / "shard1.bin", HERE / "refused_compressed.bin", zipfile.ZIP_DEFLATED)


def convert(source, out):
    from safetensors.torch import load_file

    state = load_file(pathlib.Path(source) / "model.safetensors")
    state["lm_head.weight"] = state["model.decoder.embed_tokens.weight"]  # tied: one storage under two names
    torch.save(collections.OrderedDict(sorted(state.items())), out)


convert(*sys.argv[1:]) if len(sys.argv) > 1 else main()
