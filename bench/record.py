#!/usr/bin/env python3
"""Runs the benchmarks and records their figures in bench/baseline, one JSON file each.

    bench/record.py [NAME...] [--bin FOLDER] [--model FOLDER] [--into FOLDER] [--python PROGRAM]

NAME: of the benchmarks below (default: all but the peers, about a quarter of an hour). peer_ray,
peer_trl, peer_rollout and peer_tokenizers run ours and a peer one after the other (bench/peers).
--python is a Python that has trl, transformers, torch, datasets, accelerate and gguf. A file holds the command,
the machine, its load before, the commit, and what the benchmark printed with --json. --model is a
Hugging Face folder of SmolLM2-135M-Instruct in safetensors; `starling export` makes one of a GGUF file. Without it the
benchmarks of a language model are left out, and named.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The arguments of each; {model}: the model's folder, {folder}: an empty one, {bin}: the programs.
BENCHMARKS = {
    "runtime": ["bench_runtime", "--json"],
    "transport": ["bench_transport", "--json"],
    "object": ["bench_object", "--json"],
    "broadcast": ["bench_broadcast", "--json"],
    "placement": ["bench_placement", "--json"],
    "load": ["bench_load", "--json"],
    "tokenizer": ["bench_tokenizer", "--json"],
    "reward": ["bench_reward", "--json"],
    "rollout": ["bench_rollout", "--json", "--model", "{model}", "--weights", "fp32,int8"],
    "checkpoint": ["bench_checkpoint", "--json", "--folder", "{folder}"],
    "gather": ["bench_gather", "--json", "--delay-ms", "5"],  # needs root
    "mesh": ["bench_mesh", "--json", "--model", "{model}", "--folder", "{folder}"],
    "trainer": ["bench_trainer", "--json", "--model", "{model}", "--folder", "{folder}",
                "--steps", "4"],
    "memory": ["bench/memory_peaks.py", "--json", "--bin", "{bin}", "--model", "{model}"],
}


# Ours and a peer's. {build}: the folder that --bin lies in; {python}: --python.
PEERS = {
    "peer_ray": ["bench/peers/ray/run.sh", "{build}"],
    "peer_tokenizers": ["bench/peers/tokenizers/run.sh", "{build}"],
    "peer_rollout": ["bench/peers/rollout/run.sh", "{model}", "{python}"],
    "peer_trl": ["bench/peers/trl/run.sh", "{model}", "{python}"],
}


def said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def machine() -> dict:
    cpu = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
           if line.startswith("model name")]
    memory = [line.split(":", 1)[1].strip() for line in open("/proc/meminfo")
              if line.startswith("MemTotal")]
    return {"cpu": cpu[0] if cpu else platform.machine(), "cores": os.cpu_count(),
            "memory": memory[0], "kernel": platform.release()}


def objects_in(text: str) -> list:
    """The JSON objects that begin a line, among lines of other kinds."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while at < len(text):
        if text[at] == "{":
            value, at = decoder.raw_decode(text, at)
            found.append(value)
        at = text.find("\n", at) + 1 or len(text)
    return found


def record(name: str, words: list[str], command: str, commit: str, bin: pathlib.Path,
           into: pathlib.Path) -> bool:
    load, start = round(os.getloadavg()[0], 2), time.monotonic()
    print(f"{name}: {' '.join(words)}", flush=True)
    environment = {**os.environ, "RECORD": "1", "STARLING_BIN": str(bin)}
    run = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    figures = objects_in(run.stdout)
    if run.returncode != 0 or not figures:
        print(f"{name}: exit code {run.returncode}, {len(figures)} JSON objects: not recorded")
        return False
    entry = {
        "command": command,
        "commit": commit,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": machine(), "load_average_before": load,
        "seconds": round(time.monotonic() - start, 1), "figures": figures,
    }
    (into / f"{name}.json").write_text(json.dumps(entry, indent=1) + "\n")
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, *PEERS, []], default=[])
    parser.add_argument("--bin", default=ROOT / "build/release/bin", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--python", default="python3")
    parser.add_argument("--into", default=ROOT / "bench/baseline", type=pathlib.Path)
    options = parser.parse_args()
    options.into.mkdir(parents=True, exist_ok=True)
    failed, left_out = [], []
    # Before the first file is written, which makes the tree another one.
    commit = said("git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or BENCHMARKS:
            words = BENCHMARKS.get(name) or PEERS[name]
            if "{model}" in words and options.model is None:
                left_out.append(name)
                continue
            places = {"{model}": str(options.model), "{folder}": folder,
                      "{build}": str(options.bin.parent), "{python}": options.python,
                      "{bin}": str(options.bin)}
            command = " ".join(words)
            program = ROOT / words[0] if "/" in words[0] else options.bin / words[0]
            words = [str(program), *(places.get(word, word) for word in words[1:])]
            if not record(name, words, command, commit, options.bin, options.into):
                failed.append(name)
    if left_out:
        print(f"left out, since they need --model: {', '.join(left_out)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
