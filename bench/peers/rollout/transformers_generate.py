"""transformers' generate() on what bench_rollout measures, under the same names: random prompts of one length, sampled at temperature 1, end-of-sequence ignored.

transformers_generate.py --model PATH [--batch 1,16,64] [--prompt-len 48] [--new-tokens 32] [--threads 2] [--repeat 3] [--device cpu] [--suite batches,samples,tail]

PATH is a Hugging Face folder or a .gguf file. Prints one JSON line. Decoding is timed from the first new token, as bench_rollout does.
"""
import argparse, json, os, random, statistics, time

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--batch", default="1,16,64")
parser.add_argument("--prompt-len", type=int, default=48)
parser.add_argument("--new-tokens", type=int, default=32)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--repeat", type=int, default=3)
parser.add_argument("--device", default="cpu")
parser.add_argument("--suite", default="batches", help="batches, samples (8 of one prompt of 512 tokens against one), tail (64 requests of Pareto's lengths, 16 at a time)")
options = parser.parse_args()
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ["OMP_NUM_THREADS"] = str(options.threads)  # before torch is imported

import torch
import transformers
from transformers import AutoModelForCausalLM, StoppingCriteria

torch.set_num_threads(options.threads)
transformers.logging.set_verbosity_error()


def load(path):
    if path.endswith(".gguf"):
        folder, name = os.path.split(os.path.abspath(path))
        return AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)


model = load(options.model).to(options.device).eval()
vocabulary = model.config.vocab_size


def now():
    if options.device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter()


class FirstToken(StoppingCriteria):
    """Notes when the first new token is there, and stops nothing."""

    def __init__(self):
        self.at = None

    def __call__(self, ids, scores, **kwargs):
        self.at = self.at or now()
        return torch.zeros(ids.shape[0], dtype=torch.bool, device=ids.device)


def generate(rows, prompt_tokens, new_tokens, seed, samples=1):
    """Seconds until the first token, and from there to the end."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(vocabulary, (rows, prompt_tokens), generator=generator).to(options.device)
    torch.manual_seed(seed)
    first = FirstToken()
    start = now()
    with torch.inference_mode():
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=1.0, top_k=0, top_p=1.0, num_return_sequences=samples, use_cache=True,
                             max_new_tokens=new_tokens, min_new_tokens=new_tokens, pad_token_id=0, stopping_criteria=[first])
    end = now()
    assert out.shape == (rows * samples, prompt_tokens + new_tokens), out.shape
    return first.at - start, end - first.at


def spread(values):
    return (max(values) - min(values)) / statistics.median(values)


def batches(report):
    for batch in map(int, options.batch.split(",")):
        runs = [generate(batch, options.prompt_len, options.new_tokens, i + 1) for i in range(options.repeat)]
        prefill = [batch * options.prompt_len / first for first, _ in runs]
        decode = [batch * (options.new_tokens - 1) / rest for _, rest in runs]
        report[f"decode_b{batch}_tok_per_s"] = statistics.median(decode)
        report[f"decode_b{batch}_spread"] = spread(decode)
        report[f"prefill_b{batch}_tok_per_s"] = statistics.median(prefill)
        report.setdefault("prefill_tok_per_s", statistics.median(prefill))  # of the smallest batch: one prompt


def samples(report):
    one = [sum(generate(1, 512, 1, i + 1)) for i in range(options.repeat)]
    several = [sum(generate(1, 512, 2, i + 1, samples=8)) for i in range(options.repeat)]
    report["samples"] = {"one_s": statistics.median(one), "several_s": statistics.median(several), "ratio": statistics.median(several) / statistics.median(one)}


def tail(report):
    """Static batches of 16, each until its longest is done: how generate() takes a list."""
    draw = random.Random(20)
    lengths = [min(256, int(8.0 * (1.0 - draw.random()) ** (-1 / 1.1))) for _ in range(64)]
    seconds = sum(sum(generate(16, options.prompt_len, max(lengths[i:i + 16]), i + 1)) for i in range(0, 64, 16))
    report["tail"] = {"requests": 64, "tokens": sum(lengths), "longest": max(lengths), "static_tok_per_s": sum(lengths) / seconds}


generate(1, 8, 2, 0)  # what is set up once
report = {"peer": "transformers " + transformers.__version__, "torch": torch.__version__, "attention": model.config._attn_implementation, "device": options.device,
          "threads": torch.get_num_threads(), "load_average_before": os.getloadavg()[0], "model": options.model, "prompt_len": options.prompt_len,
          "new_tokens": options.new_tokens, "repeat": options.repeat}
for suite in options.suite.split(","):
    {"batches": batches, "samples": samples, "tail": tail}[suite](report)
print(json.dumps(report))
