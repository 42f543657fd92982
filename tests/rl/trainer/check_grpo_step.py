#!/usr/bin/env python3
"""Trains one GRPO step of SmolLM2 with `starling train`, and computes its gradient and its update again with plain torch.

Torch gets the samples that the step kept.

    check_grpo_step.py STARLING_RL SMOLLM2.gguf

transformers leaves out the gradient of the input row of `pad_token_id` (torch's padding_idx), although that token, <|im_end|>, ends every turn of the prompts. Here the row
learns; how far off the gradient is without it is printed, and must be more than the tolerance: else nothing was tested.

Exit codes: 0 equal, 1 different, 77 torch or transformers is not installed (skipped).
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

QUESTIONS = [("Name a fruit.", "p"), ("Say hello.", "m")]
SAMPLES = 4
LEARNING_RATE = 1e-4
LOGPROB_TOLERANCE = 1e-3  # of one token
NORM_TOLERANCE = 1e-5  # relative
UPDATE_TOLERANCE = 1e-3  # of the whole update

failures = 0


def check(what, good, detail=""):
    global failures
    print(f"{'ok  ' if good else 'FAIL'} {what} {detail}")
    failures += not good


def run(*command):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)


def messages(question):
    return [{"role": "system", "content": "You answer briefly."}, {"role": "user", "content": question}]


def train(program, gguf, folder):
    rows = [{"prompt": messages(question), "answer": answer} for question, answer in QUESTIONS]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(program, "train", f"data.train_files={folder / 'rows.jsonl'}", f"data.train_batch_size={len(QUESTIONS)}", "data.max_prompt_length=64", "data.max_response_length=12",
        f"actor_rollout_ref.model.path={gguf}", f"actor_rollout_ref.rollout.n={SAMPLES}", "reward.rule=contains", "trainer.total_training_steps=1", "trainer.save_freq=1",
        f"trainer.rollout_data_dir={folder / 'rollouts'}", f"trainer.default_local_dir={folder / 'run'}", "trainer.logger=[file]",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={len(QUESTIONS)}", f"actor_rollout_ref.actor.optim.lr={LEARNING_RATE}", "actor_rollout_ref.actor.optim.weight_decay=0",
        "actor_rollout_ref.actor.grad_clip=1.0", "actor_rollout_ref.actor.use_kl_loss=false", "actor_rollout_ref.actor.entropy_coeff=0",
        "actor_rollout_ref.actor.loss_agg_mode=token-mean")
    metrics = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    metrics = next(line["data"] for line in metrics if "actor/grad_norm" in line["data"])
    samples = [json.loads(line) for line in (folder / "rollouts" / "1.jsonl").read_text().splitlines()]
    return metrics, samples


# The ids of each sample's prompt and response, with what the rollout said of them.
def read_samples(tokenizer, samples):
    prompts = {}
    for question, _ in QUESTIONS:
        ids = tokenizer.apply_chat_template(messages(question), add_generation_prompt=True, return_dict=False)
        prompts[tokenizer.decode(ids, skip_special_tokens=True)] = ids
    by_text = {"": [tokenizer.eos_token_id]}  # special tokens are kept as no text
    for i in range(len(tokenizer)):
        by_text.setdefault(tokenizer.decode([i]), []).append(i)
    out = []
    for sample in samples:
        ids = [by_text[text] for text in sample["tokens"]]
        assert all(len(one) == 1 for one in ids), f"tokens with one text: {sample['tokens']}"
        out.append((prompts[sample["input"]], [one[0] for one in ids], sample["logprobs"], sample["advantages"]))
    return out


# The policy gradient of the first update on samples: the ratio of probabilities is 1, and nothing is clipped.
def gradient(model, samples):
    model.zero_grad()
    count = sum(len(response) for _, response, _, _ in samples)
    worst = 0.0
    for prompt, response, logprobs, advantages in samples:
        ids = torch.tensor([prompt + response])
        logits = model(ids).logits[0, len(prompt) - 1 : -1]
        chosen = torch.log_softmax(logits, -1).gather(1, torch.tensor(response)[:, None])[:, 0]
        worst = max(worst, (chosen.detach() - torch.tensor(logprobs)).abs().max().item())
        if not any(advantages):
            continue  # no gradient
        ratio = torch.exp(chosen - chosen.detach())
        (-(ratio * torch.tensor(advantages)).sum() / count).backward()
    return {name: parameter.grad.clone() for name, parameter in model.named_parameters()}, worst


def norm(tensors):
    return torch.sqrt(sum((tensor.double() ** 2).sum() for tensor in tensors)).item()


def distance(left, right):
    return norm([left[name] - right[name] for name in left]) / norm(left.values())


def updated(model, gradients):
    for name, parameter in model.named_parameters():
        parameter.grad = gradients[name].clone()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0).step()
    return {name: parameter.detach() - before[name] for name, parameter in model.named_parameters()}, before


def saved_weights(folder):
    tensors = {}
    for file in sorted(folder.rglob("*.safetensors")):
        if "optim" not in file.name:
            tensors.update(load_file(file))
    return tensors


def main():
    program, gguf = sys.argv[1:3]
    torch.set_num_threads(1)  # no spinning where other programs run too
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        metrics, samples = train(program, gguf, folder)
        run(program, "export", "--model", gguf, "--out", folder / "model", "--dtype", "float32")
        tokenizer = AutoTokenizer.from_pretrained(folder / "model")
        model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32, attn_implementation="eager")
        pad = model.model.embed_tokens.padding_idx
        samples = read_samples(tokenizer, samples)
        check("the padding token stands in the prompts", pad is not None and all(pad in prompt for prompt, _, _, _ in samples), str(pad))
        without, worst = gradient(model, samples)
        check("log-probabilities of the samples", worst < LOGPROB_TOLERANCE, f"{worst:.1e}")
        model.model.embed_tokens.padding_idx = None
        gradients, _ = gradient(model, samples)
        expected, ours = norm(gradients.values()), metrics["actor/grad_norm"]
        check("gradient norm", abs(ours - expected) < NORM_TOLERANCE * expected, f"{ours:.7f}, torch {expected:.7f}")
        off = distance(gradients, without)
        check("the row of the padding token has a part in it", off > 5 * UPDATE_TOLERANCE, f"{off:.1e} of the gradient")
        update, before = updated(model, gradients)
        after = saved_weights(folder / "run")
        check("saved weights are all there", set(before) <= set(after), str(sorted(set(before) - set(after))[:3]))
        if failures == 0 and next(iter(after.values())).dtype == torch.float32:
            learned = {name: after[name] - before[name] for name in before}
            check("update", distance(update, learned) < UPDATE_TOLERANCE, f"{distance(update, learned):.1e} of the whole")
    return failures > 0


sys.exit(main())
