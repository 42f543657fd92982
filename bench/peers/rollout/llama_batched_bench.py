"""llama.cpp on what bench_rollout measures, under the same names, by its own llama-batched-bench:

llama_batched_bench.py --program PATH/llama-batched-bench --model MODEL.gguf [--batch 1,16,64] [--prompt-len 48] [--new-tokens 32] [--threads 2] [--repeat 3]

The weights are as MODEL.gguf has them: for fp32 make one by `llama-quantize --allow-requantize IN.gguf OUT.gguf F32`. Prints one JSON line.
"""
import argparse, json, os, statistics, subprocess, sys

parser = argparse.ArgumentParser()
parser.add_argument("--program", required=True)
parser.add_argument("--model", required=True)
parser.add_argument("--batch", default="1,16,64")
parser.add_argument("--prompt-len", type=int, default=48)
parser.add_argument("--new-tokens", type=int, default=32)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--repeat", type=int, default=3)
options = parser.parse_args()

sizes = [int(size) for size in options.batch.split(",")]
context = max(sizes) * (options.prompt_len + options.new_tokens)
rows = max(512, max(sizes) * options.prompt_len)
command = [options.program, "-m", options.model, "-c", str(context), "-b", str(rows), "-ub", str(rows), "-npp", str(options.prompt_len), "-ntg", str(options.new_tokens),
           "-npl", options.batch, "-t", str(options.threads), "-tb", str(options.threads), "-ngl", "0", "--output-format", "jsonl"]
report = {"peer": "llama.cpp", "threads": options.threads, "load_average_before": os.getloadavg()[0], "model": options.model, "prompt_len": options.prompt_len,
          "new_tokens": options.new_tokens, "repeat": options.repeat}
figures = {size: {"speed_pp": [], "speed_tg": []} for size in sizes}
for _ in range(options.repeat):
    run = subprocess.run(command, capture_output=True, text=True)
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    if run.returncode != 0 or {line["pl"] for line in lines} != set(sizes):
        sys.exit(f"error: {' '.join(command)} ended with {run.returncode} and {len(lines)} of {len(sizes)} results\n{run.stderr[-2000:]}")
    for line in lines:
        for name in ("speed_pp", "speed_tg"):
            figures[line["pl"]][name].append(line[name])
for size in sizes:
    decode, prefill = figures[size]["speed_tg"], figures[size]["speed_pp"]
    report[f"decode_b{size}_tok_per_s"] = statistics.median(decode)
    report[f"decode_b{size}_spread"] = (max(decode) - min(decode)) / statistics.median(decode)
    report[f"prefill_b{size}_tok_per_s"] = statistics.median(prefill)
    report.setdefault("prefill_tok_per_s", statistics.median(prefill))
print(json.dumps(report))
