#!/usr/bin/env python3
"""Makes the files under tests/rl/data/files with the libraries that users make theirs with: pip install datasets==5.2.0 pyarrow==26.0.1"""
import datetime, decimal, json, pathlib, shutil

import datasets, pyarrow as pa, pyarrow.ipc, pyarrow.parquet as pq

out = pathlib.Path(__file__).parent / "files"
shutil.rmtree(out, ignore_errors=True)
out.mkdir()


def verl(i):  # as verl's examples/data_preprocess/gsm8k.py makes them
    return {"data_source": "openai/gsm8k", "prompt": [{"role": "user", "content": f"What is {i}+{i}? Žluťoučký kůň"}], "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(2 * i)}, "extra_info": {"split": "train", "index": i, "answer": f"{i}+{i}\n#### {2 * i}"}}


rows = [verl(i) for i in range(10)]
table = pa.Table.from_pylist(rows)
for codec in ("snappy", "gzip", "zstd", "brotli", "lz4"):
    pq.write_table(table, out / f"verl_{codec}.parquet", compression=codec, row_group_size=4)

# Every type that Arrow has and JSON has a form for, and missing values.
types = pa.table({
    "int8": pa.array([-8, None], pa.int8()), "uint64": pa.array([2**64 - 1, None], pa.uint64()), "float": pa.array([0.5, None], pa.float32()), "bool": pa.array([True, None]),
    "text": pa.array(["a", None], pa.large_string()), "bytes": pa.array([b"xyz", None]), "day": pa.array([datetime.date(2024, 2, 29), None]),
    "decimal": pa.array([decimal.Decimal("1.25"), None]), "dictionary": pa.array(["x", None]).dictionary_encode(), "list": pa.array([[1, None], None]),
    "fixed": pa.array([[1, 2], None], pa.list_(pa.int32(), 2)), "map": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())), "null": pa.nulls(2)})
pq.write_table(types, out / "types.parquet")
with pa.ipc.new_file(out / "types.arrow", types.schema) as writer:
    writer.write_table(types)
pq.write_table(table.slice(0, 0), out / "empty.parquet")
with pa.ipc.new_file(out / "empty.arrow", table.schema) as writer:
    writer.write_table(table.slice(0, 0))
datasets.Dataset.from_dict({"prompt": [], "reward_model": []}).save_to_disk(str(out / "saved_empty"))

datasets.Dataset.from_list(rows).save_to_disk(str(out / "saved"), num_shards=2)
datasets.DatasetDict({"train": datasets.Dataset.from_list(rows[:6]), "test": datasets.Dataset.from_list(rows[6:])}).save_to_disk(str(out / "splits"))

# Messages of trees, in oasst1's columns; the reply of rank 0 is not the first.
messages = [("a", None, "prompter", "Hi", None), ("b", "a", "assistant", "Bad", 1.0), ("c", "a", "assistant", "Good", 0.0), ("d", "c", "prompter", "More?", None),
            ("e", "d", "assistant", "Yes", None), ("f", None, "prompter", "Nobody answers", None)]
pq.write_table(pa.Table.from_pylist([dict(zip(("message_id", "parent_id", "role", "text", "rank"), m)) | {"lang": "en"} for m in messages]), out / "oasst1.parquet")

# One file's end is missing, one's footer lies.
whole = (out / "verl_snappy.parquet").read_bytes()
(out / "cut.parquet").write_bytes(whole[: len(whole) // 2])
length = int.from_bytes(whole[-8:-4], "little")
footer = bytearray(whole[-8 - length : -8])
damaged = bytearray(whole)
for i in range(40, len(whole) - 8 - length, 7):  # pages whose bytes are others
    damaged[i] ^= 0x5A
(out / "damaged.parquet").write_bytes(damaged)
(out / "lying.parquet").write_bytes(whole[: -8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
stream = next((out / "saved").glob("*.arrow")).read_bytes()
(out / "cut.arrow").write_bytes(stream[: len(stream) - 100])
(out / "open.arrow").write_bytes(stream[:-8])  # right behind the last batch

# GSM8K as it is published.
(out / "gsm8k.jsonl").write_text("".join(json.dumps({"question": f"What is {i}+{i}?", "answer": f"{i}+{i}=<<{i}+{i}={2 * i}>>{2 * i}\n#### {2 * i}"}) + "\n" for i in range(4)))

# Half precision, and columns with one name.
half = pa.table({"prompt": pa.array(["a", "b", "c", "d"]), "difficulty": pa.array([0.5, -1.25, 6.1035e-05, 5.9605e-08], type=pa.float32()).cast(pa.float16())})
pq.write_table(half, out / "half.parquet")
with pa.ipc.new_file(out / "half.arrow", half.schema) as sink:
    sink.write_table(half)
twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["1"]), pa.array(["2"])], names=["prompt", "answer", "answer"])
pq.write_table(twice, out / "twice.parquet")
with pa.ipc.new_file(out / "twice.arrow", twice.schema) as sink:
    sink.write_table(twice)
