"""TRL's GRPOTrainer on the toy task of docs/results.md, from the same warm start.

The sizes are the same: 32 prompts with 8 answers a step, two optimizer steps each.

starling train --config examples/toy/grpo.yaml actor_rollout_ref.actor.optim.lr=0 trainer.total_training_steps=1 trainer.save_freq=1 trainer.default_local_dir=warm
toy_learning.py --model warm/global_step_1/actor/huggingface [--steps 150] [--seed 1] [--rate 1e-3] [--threads 2]

Prints one JSON line: the mean score of the first and the last five steps, and that of 64 held-out prompts (greedy) before and after.
"""
import argparse, json, os, random, time

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--steps", type=int, default=150)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--rate", type=float, default=1e-3)
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
torch.set_num_threads(options.threads)
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
import trl

model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
tokenizer = AutoTokenizer.from_pretrained(options.model)
if tokenizer.pad_token is None:
    tokenizer.pad_token = tokenizer.eos_token
draw = random.Random(options.seed)


def row():
    letters = [draw.choice("abcdefgh") for _ in range(4)]
    return {"prompt": [{"role": "user", "content": "sort " + "".join(letters)}], "truth": "".join(sorted(letters))}


def share(answer, truth):
    return sum(a == b for a, b in zip(answer, truth)) / max(len(truth), len(answer))


means = []


def score(completions, truth, **more):
    values = [share(completion[0]["content"], wanted) for completion, wanted in zip(completions, truth)]
    means.append(sum(values) / len(values))
    return values


held_out = [row() for _ in range(64)]


def held_out_score():
    total = 0.0
    for one in held_out:
        ids = tokenizer.apply_chat_template(one["prompt"], add_generation_prompt=True, return_tensors="pt", return_dict=False)
        out = model.generate(ids, max_new_tokens=8, do_sample=False)
        total += share(tokenizer.decode(out[0, ids.shape[1]:], skip_special_tokens=True), one["truth"])
    return total / len(held_out)


config = trl.GRPOConfig(output_dir="/tmp/trl_toy", max_steps=2 * options.steps, per_device_train_batch_size=128, steps_per_generation=2, num_generations=8, max_completion_length=8, learning_rate=options.rate,
                        lr_scheduler_type="cosine_with_min_lr", lr_scheduler_kwargs={"min_lr_rate": 0.1}, beta=0.0, temperature=1.0, loss_type="dapo", weight_decay=0.01, max_grad_norm=1.0, use_vllm=False,
                        use_cpu=True, bf16=False, fp16=False, gradient_checkpointing=False, save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, seed=options.seed)
before = held_out_score()
trainer = trl.GRPOTrainer(model=model, args=config, train_dataset=Dataset.from_list([row() for _ in range(4096)]), reward_funcs=score, processing_class=tokenizer)
start = time.perf_counter()
trainer.train()
seconds = time.perf_counter() - start
mean = lambda values: sum(values) / len(values)
print(json.dumps({"peer": "trl " + trl.__version__, "seed": options.seed, "rate": options.rate, "steps": len(means), "first": mean(means[:5]), "last": mean(means[-5:]), "held_out_before": before,
                  "held_out_after": held_out_score(), "s_per_step": seconds / len(means)}))
