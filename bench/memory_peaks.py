#!/usr/bin/env python3
"""Compares the peaks of workers with what a dry run says of them.

    bench/memory_peaks.py --model PATH [--bin FOLDER] [--workers N] [--rows N] [--length N] [--only NAME...]
        [--device NAME] [--json]

PATH is a model as `model.path` takes it. Each way to share its state is planned by `starling sft
--dry-run`, and then trained for two steps on this machine. A peak is the largest resident
memory of any worker, as the step's metrics have it; both are in GB (10^9 bytes). "over" is by how
much the peak lies above (+) or below (-) what was said. The dry run refuses a way where a model's
heads cannot be dealt to the workers. It is then measured with fewer, and left out if two are too many.
With a device (cuda) the peak is that of the device's memory.
"""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

GIB = 2**30 / 1e9  # GB; metrics are in GiB
ROOT = pathlib.Path(__file__).resolve().parent.parent
WAYS = {
    "level 0": ["engine.zero_level=0"],
    "level 1": ["engine.zero_level=1"],
    "level 2": ["engine.zero_level=2"],
    "level 3": ["engine.zero_level=3"],
    "level 3 in groups of half": ["engine.zero_level=3", "engine.fsdp_size={half}"],
    "tensor parallel": ["engine.tensor_model_parallel_size={workers}"],
    "sequence parallel": ["engine.ulysses_sequence_parallel_size={workers}"],
    "pipeline": ["engine.pipeline_model_parallel_size={workers}"],
}


def training_rows(file: pathlib.Path, count: int, length: int) -> None:
    """Conversations that are longer than `length` tokens."""
    with file.open("w") as out:
        for row in range(count):
            numbers = " ".join(str(row + step) for step in range(length))
            out.write(json.dumps({"messages": [{"role": "user", "content": f"Count from {row} on."},
                                               {"role": "assistant", "content": numbers}]}) + "\n")


class Refused(Exception):
    """The dry run says why."""


def say(command: list[str]) -> str:
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stdout.strip().splitlines()[-1] if run.stdout else "no output")
    return run.stdout


def gigabytes(amounts: str) -> float:
    """The sum of all amounts in a text."""
    return sum(float(size) * {"GB": 1, "MB": 1e-3, "kB": 1e-6}[unit]
               for size, unit in re.findall(r"([\d.]+) (GB|MB|kB)\b", amounts))


def said_peak(text: str) -> tuple[float, str]:
    """GB, and the parts, which are said with more digits than their sum. Of several kinds of workers
    the one with the most."""
    found = re.findall(r"^  worker[^:]*: ([\d.]+ [GM]B) \((.*)\)$", text, re.MULTILINE)
    if not found:
        raise RuntimeError("the dry run says nothing of a worker's memory")
    whole, parts = max(found, key=lambda each: gigabytes(each[0]))
    if abs(gigabytes(parts) - gigabytes(whole)) > 0.11:  # each is rounded to 0.05 GB
        raise RuntimeError(f"the dry run's parts are not {whole}: {parts}")
    return gigabytes(parts), parts


def said_device_peak(text: str) -> float:
    """GB."""
    found = re.search(r"^memory of each device .*:\n  ([\d.]+ [GM]B)$", text, re.MULTILINE)
    if not found:
        raise RuntimeError("the dry run says nothing of a device's memory")
    return gigabytes(found[1])


def measure(name: str, workers: int, options: argparse.Namespace, folder: pathlib.Path) -> dict:
    places = {"workers": workers, "half": max(1, workers // 2)}
    run = folder / name.replace(" ", "_")
    rows = folder / "rows.jsonl"
    training_rows(rows, 2 * options.rows, options.length)
    command = [str(options.bin / "starling"), "sft", f"model.path={options.model}",
               f"data.train_files={rows}", f"data.train_batch_size={options.rows}",
               f"data.max_length={options.length}", "data.truncation=right",
               f"trainer.n_gpus_per_node={workers}", "trainer.total_training_steps=2",
               f"trainer.default_local_dir={run}", *([f"trainer.device={options.device}"] if options.device else []),
               *(key.format(**places) for key in WAYS[name])]
    try:
        plan = say([*command, "--dry-run"])
    except RuntimeError as why:
        raise Refused(str(why)) from why
    said, parts = said_peak(plan)
    metric = "perf/max_memory_allocated_gb"
    if options.device:
        said, metric = said_device_peak(plan), "perf/max_memory_reserved_gb"
    say(command)
    steps = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    peak = GIB * max(step["data"][metric] for step in steps)
    return {"benchmark": "memory_peaks", "way": name, "device": options.device or "cpu", "workers": workers,
            "rows": options.rows, "length": options.length, "said_gb": round(said, 3),
            "peak_gb": round(peak, 3), "over": round(peak / said - 1, 3), "parts": parts}


def measured(name: str, options: argparse.Namespace) -> dict:
    """With as many workers as the dry run accepts."""
    why = Refused("it takes two workers")
    for workers in range(options.workers, 1, -1):
        with tempfile.TemporaryDirectory() as folder:
            try:
                return measure(name, workers, options, pathlib.Path(folder))
            except Refused as refused:
                why = refused
    raise why


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--bin", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--workers", default=4, type=int)
    parser.add_argument("--rows", default=4, type=int, help="a step")
    parser.add_argument("--length", default=128, type=int, help="tokens of a row")
    parser.add_argument("--device", help="trainer.device of the runs")
    parser.add_argument("--only", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    failed = False
    for name in options.only:
        try:
            row = measured(name, options)
        except Refused as why:
            print(f"{name}: left out: {why}", file=sys.stderr, flush=True)
            continue
        except RuntimeError as why:
            print(f"{name}: {why}", file=sys.stderr, flush=True)
            failed = True
            continue
        if options.json:
            print(json.dumps(row), flush=True)
        else:
            print(f"{name}, {row['workers']} workers: peak {row['peak_gb']:.2f} GB, "
                  f"said {row['said_gb']:.2f} GB ({row['over']:+.1%})", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
