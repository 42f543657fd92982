#!/usr/bin/env python3
"""Trains five steps with `starling dpo`, `kto` and `rm`, and with the trainers of TRL (1.16), and compares what they report.

Both take the same rows and begin with the same weights.

    check_with_trl.py STARLING_RL

Exit codes: 0 equal, 1 different, 77 trl, transformers or torch is not installed (skipped).
"""
import contextlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
    from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STEPS = 5
ROWS = 12
TOLERANCE = 2e-4  # of values near 1, fp32 on CPU: Adam's first steps enlarge rounding
COMPARED = ("loss", "grad_norm", "kl", "accuracy", "margin", "mean_reward", "rewards/chosen", "rewards/rejected", "rewards/margins", "logps/chosen", "logps/rejected")


def write_rows(folder):
    random.seed(2)
    pairs, singles = [], []
    for i in range(ROWS):
        letters = "".join(random.choice("abcdefgh") for _ in range(3)) + "abcdefghijkl"[i]
        good = letters[: random.randrange(2, 5)]
        bad = "".join(random.choice("abcdefgh") for _ in range(random.randrange(1, 5))) + "z"
        pairs.append({"prompt": "copy " + letters, "chosen": good, "rejected": bad})
        singles.append({"prompt": "copy " + letters, "completion": good if i % 3 else bad, "label": bool(i % 3)})
    for name, rows in (("pairs", pairs), ("singles", singles)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return pairs, singles


def ours(starling, folder, name, command, model, data, keys):
    run = folder / name
    subprocess.run(
        [starling, command, f"data.train_files={folder / data}.jsonl", f"model.path={model}", f"data.train_batch_size={ROWS}", "data.max_length=64", "data.shuffle=false", "optim.lr=1e-3",
         "optim.weight_decay=0", f"trainer.total_training_steps={STEPS}", f"trainer.default_local_dir={run}", "trainer.logger=[file]", *keys],
        check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    lines = [json.loads(line)["data"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key[len("train/"):]: value for key, value in line.items() if key.startswith("train/")} for line in lines]


def theirs(folder, kind, model, rows):
    tokenizer = AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = None
    common = dict(output_dir=str(folder / "trl"), per_device_train_batch_size=ROWS, max_steps=STEPS, learning_rate=1e-3, lr_scheduler_type="constant", weight_decay=0.0, max_grad_norm=1.0,
                  logging_steps=1, report_to=[], use_cpu=True, bf16=False, gradient_checkpointing=False, save_strategy="no", max_length=64, disable_tqdm=True)
    data = dict(train_dataset=Dataset.from_list(rows), processing_class=tokenizer)
    load = lambda: AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    if kind == "rm":
        trainer = RewardTrainer(model=AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32), args=RewardConfig(**common, center_rewards_coefficient=0.01), **data)
    elif kind == "kto":
        trainer = KTOTrainer(model=load(), ref_model=load(), args=KTOConfig(**common, beta=0.5, desirable_weight=1.3, train_sampling_strategy="sequential"), **data)
    else:
        trainer = DPOTrainer(model=load(), ref_model=load(), args=DPOConfig(**common, beta=0.1, loss_type=kind), **data)
    with contextlib.redirect_stdout(None):
        trainer.train()
    return [entry for entry in trainer.state.log_history if "loss" in entry]


def compare(name, mine, other):
    worst = 0.0
    for key in COMPARED:
        values = [(a[key], b[key]) for a, b in zip(mine, other) if key in a and key in b]
        worst = max([worst] + [abs(a - b) / max(1.0, abs(b)) for a, b in values])
    same = len(mine) == len(other) == STEPS and worst <= TOLERANCE
    losses = " ".join(f"{step['loss']:.4f}" for step in mine)
    print(f"{name}: {'equal' if same else 'DIFFERENT'}, worst difference {worst:.1e}; loss {losses}")
    return same


def main():
    starling = sys.argv[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        pairs, singles = write_rows(folder)
        # One step of a reward model makes both folders to begin with: the toy model, and one with a head.
        ours(starling, folder, "begin", "rm", "toy", "pairs", [])
        model = next(path.parent for path in (folder / "begin").rglob("config.json") if "global_step" not in str(path))
        head = folder / "begin" / f"global_step_{STEPS}" / "huggingface"
        same = True
        for loss, kind, keys in (("sigmoid", "sigmoid", []), ("hinge", "hinge", []), ("sppo", "sppo_hard", []), ("ipo", "ipo", ["preference.average_logprobs=true"]),
                                 ("sigmoid", "sigmoid_norm", ["preference.average_logprobs=true"])):
            same &= compare(f"dpo {kind}", ours(starling, folder, kind, "dpo", model, "pairs", [f"preference.loss={loss}", *keys]), theirs(folder, kind, model, pairs))
        same &= compare("kto", ours(starling, folder, "kto", "kto", model, "singles", ["preference.beta=0.5", "preference.desirable_weight=1.3"]), theirs(folder, "kto", model, singles))
        same &= compare("rm", ours(starling, folder, "rm", "rm", head, "pairs", ["preference.center_coefficient=0.01"]), theirs(folder, "rm", head, pairs))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
