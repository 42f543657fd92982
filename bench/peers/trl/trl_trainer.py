"""TRL on what bench_trainer measures, with the same data, model and sizes, under the same names:

bench_trainer --folder FOLDER --make
trl_trainer.py --folder FOLDER --model HF_FOLDER [--suite grpo,sft,toy] [--steps 6] [--threads 2]

HF_FOLDER: a Hugging Face folder of the model (`starling export` makes one of a GGUF file). Each suite is a separate process; "first_step_s" counts from its start, imports
included. fp32, AdamW (fused where torch has it), no KL, one update a batch, no gradient checkpointing. Prints one JSON line.
"""
import argparse, json, os, statistics, subprocess, sys, time

parser = argparse.ArgumentParser()
parser.add_argument("--folder", required=True)
parser.add_argument("--model")
parser.add_argument("--suite", default="grpo,sft,toy")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
options = parser.parse_args()


def process_age():
    ticks = os.sysconf("SC_CLK_TCK")
    started = int(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]) / ticks
    return float(open("/proc/uptime").read().split()[0]) - started


def peak_gb():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e9


def rows(name):
    with open(os.path.join(options.folder, name)) as file:
        return [json.loads(line) for line in file]


def run_one(suite):
    import torch
    torch.set_num_threads(options.threads)
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    import trl

    ends = []

    class Watch(TrainerCallback):
        def on_step_end(self, *arguments, **more):
            ends.append((process_age(), time.perf_counter()))

    model_folder = os.path.join(options.folder, "toy_model") if suite == "toy" else options.model
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    common = dict(output_dir=os.path.join(options.folder, "trl_" + suite), max_steps=options.steps, save_strategy="no", report_to=[], use_cpu=True, bf16=False, fp16=False, logging_strategy="no",
                  gradient_checkpointing=False, disable_tqdm=True, seed=1, optim="adamw_torch_fused", lr_scheduler_type="constant")
    if suite == "sft":
        data = Dataset.from_list([{"messages": row["messages"]} for row in rows("texts.jsonl")])
        config = trl.SFTConfig(per_device_train_batch_size=8, max_length=256, learning_rate=1e-5, **common)
        trainer = trl.SFTTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer, callbacks=[Watch()])
        unit, count = "tokens", 8 * 256
    else:
        name, prompts, new_tokens, kwargs = ("sums.jsonl", 4, 32, {}) if suite == "grpo" else ("toy.jsonl", 16, 16, {"min_new_tokens": 16})
        data = Dataset.from_list([{"prompt": row["prompt"], "truth": row["reward_model"]["ground_truth"]} for row in rows(name)])

        def score(completions, truth, **more):
            texts = [completion[0]["content"] if isinstance(completion, list) else completion for completion in completions]
            return [float(answer.strip() == wanted) if suite == "grpo" else sum(a == b for a, b in zip(answer, wanted)) / len(wanted) for answer, wanted in zip(texts, truth)]

        config = trl.GRPOConfig(per_device_train_batch_size=4 * prompts, num_generations=4, max_completion_length=new_tokens, learning_rate=1e-6 if suite == "grpo" else 1e-3, beta=0.0,
                                temperature=1.0, use_vllm=False, generation_kwargs=kwargs or None, **common)
        trainer = trl.GRPOTrainer(model=model, args=config, train_dataset=data, reward_funcs=score, processing_class=tokenizer, callbacks=[Watch()])
        unit, count = "samples", 4 * prompts
    trainer.train()
    seconds = statistics.median(later[1] - earlier[1] for earlier, later in zip(ends, ends[1:]))
    print("FIGURES " + json.dumps({f"{suite}_s_per_step": seconds, f"{suite}_{unit}_per_s": count / seconds, f"{suite}_first_step_s": ends[0][0], f"{suite}_peak_gb": peak_gb()}))


if options.one:
    run_one(options.suite)
else:
    import importlib.metadata
    report = {"peer": "TRL", "threads": options.threads, "steps": options.steps, "load_average_before": os.getloadavg()[0]}
    for suite in options.suite.split(","):
        if suite != "toy" and not options.model:
            sys.exit("error: --model names the model of the suites grpo and sft")
        command = [sys.executable, os.path.abspath(__file__), "--one", "--folder", options.folder, "--suite", suite, "--steps", str(options.steps), "--threads", str(options.threads)]
        run = subprocess.run(command + (["--model", options.model] if options.model else []), capture_output=True, text=True)
        found = [line for line in run.stdout.splitlines() if line.startswith("FIGURES ")]
        if run.returncode != 0 or not found:
            sys.exit(f"error: {suite} ended with {run.returncode}\n{run.stderr[-3000:]}")
        report.update(json.loads(found[0][len("FIGURES "):]))
    print(json.dumps(report))
