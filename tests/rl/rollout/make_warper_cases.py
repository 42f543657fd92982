"""Records in warper_cases.json what transformers (5.23.0) makes of logits: the penalized likeliest token and the probabilities to draw from."""
import json, pathlib, random

import torch
from transformers.generation.logits_process import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor, TemperatureLogitsWarper,
                                                    TopKLogitsWarper, TopPLogitsWarper)

random.seed(3)
cases = []
for i in range(40):
    logits = [round(random.gauss(0, 2.5), 3) for _ in range(12)]
    history = [random.randrange(12) for _ in range(random.randrange(1, 9))]
    params = {"temperature": random.choice([0.5, 0.8, 1.0, 1.6]), "repetition_penalty": random.choice([1.0, 1.05, 1.3, 2.0, 0.7]), "top_k": random.choice([0, 0, 3, 6]),
              "top_p": random.choice([1.0, 1.0, 0.9, 0.6]), "min_p": random.choice([0.0, 0.05, 0.2])}
    ids, scores = torch.tensor([history]), torch.tensor([logits])
    penalized = RepetitionPenaltyLogitsProcessor(params["repetition_penalty"])(ids, scores)
    warpers = LogitsProcessorList([TemperatureLogitsWarper(params["temperature"])])
    if params["top_k"]:
        warpers.append(TopKLogitsWarper(params["top_k"]))
    if params["top_p"] < 1:
        warpers.append(TopPLogitsWarper(params["top_p"]))
    if params["min_p"]:
        warpers.append(MinPLogitsWarper(params["min_p"]))
    probabilities = torch.softmax(warpers(ids, penalized), dim=-1)[0]
    cases.append({"logits": logits, "history": history, "params": params, "greedy": int(penalized[0].argmax()), "probabilities": [round(p, 5) for p in probabilities.tolist()]})
pathlib.Path(__file__).with_name("warper_cases.json").write_text("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
