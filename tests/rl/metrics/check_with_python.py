"""Reads with TensorBoard's and wandb's own code what sinks_test.cpp wrote into the folder that is given."""
import csv
import glob
import json
import os
import struct
import sys
import zlib

folder = sys.argv[1]
want = {step: float((100 if step < 4 else 400) + step) for step in range(1, 10)}

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(folder + "/tensorboard", size_guidance={"scalars": 0})
events.Reload()
got = {e.step: e.value for e in events.Scalars("critic/score/mean")}
assert got == want, got
assert abs([e.value for e in events.Scalars("actor/lr") if e.step == 9][0] - 0.5 / 9) < 1e-9
assert len(events.Tags()["scalars"]) == 302

with open(folder + "/metrics.csv") as file:
    got = {int(row["step"]): float(row["critic/score/mean"]) for row in csv.DictReader(file)}
assert got == want, got

from wandb.proto import wandb_internal_pb2


def records(path):
    """The records of a LevelDB log, checksums checked."""
    data = open(path, "rb").read()
    assert data[:4] == b":W&B" and struct.unpack("<HB", data[4:7]) == (0xBEE1, 0)
    at, whole = 7, b""
    while at < len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        checksum, length, kind = struct.unpack("<IHB", data[at : at + 7])
        piece = data[at + 7 : at + 7 + length]
        assert zlib.crc32(piece, zlib.crc32(bytes([kind]))) == checksum
        whole += piece
        at += 7 + length
        if kind in (1, 4):
            yield whole
            whole = b""


ids, got = set(), {}
for path in sorted(glob.glob(folder + "/wandb/offline-run-*/*.wandb"), key=os.path.getmtime):
    kinds = []
    for bytes_ in records(path):
        record = wandb_internal_pb2.Record.FromString(bytes_)
        kinds.append(record.WhichOneof("record_type"))
        if kinds[-1] == "run":
            ids.add(record.run.run_id)
            assert record.run.project == "project" and record.run.display_name == "name"
            assert {i.key: json.loads(i.value_json) for i in record.run.config.update} == {"data": {"seed": 7}}
        if kinds[-1] == "history":
            items = {"/".join(i.nested_key): json.loads(i.value_json) for i in record.history.item}
            assert items["_step"] == record.history.step.num
            got[items["_step"]] = items["critic/score/mean"]
    assert kinds[0] == "header" and kinds[1] == "run" and kinds[-1] == "exit", kinds
assert got == want, got
assert len(ids) == 1, ids
