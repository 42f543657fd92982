"""Records in beam_cases.json what transformers (5.23.0) finds by beam search with the fixture models, their weights times six so that tokens differ in likelihood."""
import itertools, json, pathlib

import torch
import transformers

here = pathlib.Path(__file__).parent
models = here.parents[1] / "fixtures" / "models"
common = {"num_return_sequences": 1, "length_penalty": 1.0, "early_stopping": False, "max_new_tokens": 12, "min_new_tokens": 0, "repetition_penalty": 1.0, "bad_words_ids": [], "eos": [2]}
many = list(range(2, 42, 4))  # enough ends that hypotheses end early
asked = [
    {"num_beams": 2},
    {"num_beams": 4, "num_return_sequences": 4, "eos": many},
    {"num_beams": 4, "num_return_sequences": 4, "eos": many, "early_stopping": True},
    {"num_beams": 3, "num_return_sequences": 3, "eos": many, "early_stopping": "never", "length_penalty": 2.0},
    {"num_beams": 3, "num_return_sequences": 2, "eos": many, "length_penalty": -1.0},
    {"num_beams": 5, "num_return_sequences": 5, "eos": many, "length_penalty": 0.0, "early_stopping": "never"},
    {"num_beams": 4, "num_return_sequences": 2, "eos": many, "min_new_tokens": 5, "repetition_penalty": 1.3},
    {"num_beams": 4, "num_return_sequences": 3, "eos": [2, 10, 18], "bad_words_ids": [[26], [30, 31], [5, 6, 7]], "max_new_tokens": 20},
]
cases = []
for name in ["llama", "qwen2", "gpt2", "gemma2"]:
    model = transformers.AutoModelForCausalLM.from_pretrained(models / name, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(6)
    reference = json.loads((models / name / "reference.json").read_text())
    prompts = [reference["input_ids"][0][:9], reference["input_ids"][0][3:8]]
    for options, prompt in itertools.product(asked, prompts):
        params = {**common, **options}
        given = {key: value for key, value in params.items() if key != "eos" and value != []}
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, eos_token_id=params["eos"], pad_token_id=0, return_dict_in_generate=True, output_scores=True, **given)
        hypotheses = []
        for row, score in zip(out.sequences.tolist(), out.sequences_scores.tolist()):
            new = row[len(prompt):]
            end = next((i + 1 for i, token in enumerate(new) if token in params["eos"]), len(new))
            hypotheses.append({"ids": new[:end], "score": round(score, 5)})
        cases.append({"model": name, "prompt": prompt, "params": params, "hypotheses": hypotheses})
(here / "beam_cases.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
