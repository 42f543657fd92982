#!/usr/bin/env python3
"""Loads an adapter that we saved with the real PEFT and compares logits: check_with_peft.py BASE ADAPTER EXPECTED.json

EXPECTED.json has "input_ids" and "logits_last". Exit codes: 0 equal, 1 different, 77 peft, transformers or torch is not installed.
"""
import json
import pathlib
import sys

try:
    import peft
    import torch
    import transformers
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

base, adapter, expected = sys.argv[1:]
model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager")
model = peft.PeftModel.from_pretrained(model, adapter).eval()
reference = json.loads(pathlib.Path(expected).read_text())
with torch.no_grad():
    logits = model(input_ids=torch.tensor([reference["input_ids"]])).logits[0, -1]
worst = (logits - torch.tensor(reference["logits_last"])).abs().max().item()
print(f"peft {peft.__version__}: largest difference of logits {worst:.2e}")
sys.exit(0 if worst <= 1e-4 else 1)
