#!/usr/bin/env python3
"""Loads what `starling export` wrote with the real transformers and compares logits, tokens and chat text with the reference.

    check_with_transformers.py STARLING_RL [FIXTURES] [SMOLLM2.gguf]

Exit codes: 0 equal, 1 different, 77 transformers or torch is not installed (skipped).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

LOGIT_TOLERANCE = 1e-4  # of the fixtures, fp32 on CPU
LOGPROB_TOLERANCE = 1e-3  # of SmolLM2

failures = 0


def check(what, good, detail=""):
    global failures
    print(f"{'ok  ' if good else 'FAIL'} {what} {detail}")
    failures += not good


def export(program, source, out, *more):
    subprocess.run([program, "export", "--model", str(source), "--out", str(out), *more], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def load(folder, dtype=torch.float32):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()


# In bfloat16: the same numbers as torch rounds them.
def check_rounded(program, case, out):
    export(program, case, out, "--dtype", "bfloat16")
    rounded = load(out, "auto")
    original = load(case).state_dict()
    kept = rounded._keep_in_fp32_modules_strict or ()  # transformers wants these as they are, whatever the model's dtype
    wrong = []
    for name, value in rounded.state_dict().items():
        dtype = torch.float32 if any(part in name for part in kept) else torch.bfloat16
        if value.dtype != dtype or not torch.equal(value, original[name].to(dtype)):
            wrong.append(name)
    check(f"{case.name}: rounded to bfloat16 as torch does", not wrong, str(wrong[:3]) if wrong else "")


def check_fixture(program, case, out):
    export(program, case, out)
    model = load(out)
    reference = json.loads((case / "reference.json").read_text())
    ids = torch.tensor(reference["input_ids"])
    mask = torch.tensor(reference["attention_mask"])
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        logits = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
        original = load(case)(input_ids=ids, attention_mask=mask, position_ids=positions).logits
        # Alone, since the angles of some scalings depend on the longest of a batch.
        last = torch.stack([model(input_ids=row[kept.bool()][None]).logits[0, -1] for row, kept in zip(ids, mask)])
    worst = (last - torch.tensor(reference["logits_last"])).abs().max().item()
    check(f"{case.name}: logits of the exported folder", worst <= LOGIT_TOLERANCE, f"off by {worst:.1e}")
    check(f"{case.name}: same bits as the original folder", torch.equal(logits, original))
    check(f"{case.name}: same generation config", model.generation_config.to_diff_dict() == load(case).generation_config.to_diff_dict())
    check_rounded(program, case, out.with_name(out.name + "_rounded"))
    check(f"{case.name}: same stop tokens", model.generation_config.eos_token_id == load(case).generation_config.eos_token_id)


def check_smollm2(program, gguf, fixtures, out):
    export(program, gguf, out, "--shard-mib", "200")
    model = load(out)
    tokenizer = transformers.AutoTokenizer.from_pretrained(out)
    for number, case in enumerate(json.loads((fixtures / "smollm2" / "reference.json").read_text())):
        prompt = tokenizer.apply_chat_template(case["messages"], add_generation_prompt=True, return_dict=False)
        check(f"smollm2 {number}: chat template and tokenizer give the prompt", list(prompt) == case["prompt_ids"])
        ids = torch.tensor([case["prompt_ids"] + case["greedy_ids"]])
        with torch.no_grad():
            logprobs = model(ids).logits[0, :-1].log_softmax(-1).gather(1, ids[0, 1:, None])[:, 0]
        worst = (logprobs - torch.tensor(case["token_logprobs"])).abs().max().item()
        check(f"smollm2 {number}: log-probs", worst <= LOGPROB_TOLERANCE, f"off by {worst:.1e}")
        check(f"smollm2 {number}: text", tokenizer.decode(case["greedy_ids"], skip_special_tokens=True) == case["greedy_text"])
    tricky = json.loads((fixtures / "smollm2" / "tokenizer_reference.json").read_text())
    cases = tricky["cases"] if isinstance(tricky, dict) else tricky
    wrong = [case["text"] for case in cases if tokenizer(case["text"])["input_ids"] != case["ids"]]
    check(f"smollm2: tokens of {len(cases)} tricky texts", not wrong, repr(wrong[:3]) if wrong else "")


def main():
    program = sys.argv[1]
    fixtures = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2] / "fixtures")
    gguf = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
    with tempfile.TemporaryDirectory() as folder:
        for case in sorted((fixtures / "models").iterdir()):
            config = case / "config.json"
            if not config.exists() or not (case / "reference.json").exists():
                continue
            if json.loads(config.read_text())["model_type"] not in transformers.CONFIG_MAPPING:
                print(f"n/a  {case.name}: transformers knows it by code on the hub only")
            else:
                check_fixture(program, case, pathlib.Path(folder) / case.name)
        if gguf is not None:
            check_smollm2(program, gguf, fixtures, pathlib.Path(folder) / "smollm2")
    print(f"transformers {transformers.__version__}: {failures} differences")
    return 1 if failures else 0


sys.exit(main())
