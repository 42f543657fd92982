#!/usr/bin/env python3
"""Compares math_pairs.jsonl with the package math-verify: check_with_math_verify.py [FILE] (needs math-verify 0.9).

A row has an answer, a ground truth, whether the answer is right, and where the two come from. Where math-verify says
otherwise, it has `math_verify` and the reason, `why`; docs/guide/rewards.md has the reasons in full. Prints each row of which
the file says something else than the package does, and fails if there is one.

Sources:
- math-verify's own tests (huggingface/Math-Verify, Apache-2.0);
- answers of MATH-500 (hendrycks/math, MIT, in the selection of openai/prm800k, MIT) and of AIME 2024. Each is paired with
  other ways to write it and with other problems' answers;
- pairs by hand for the kinds of answers that were once judged wrongly.
"""
import collections
import json
import logging
import pathlib
import sys

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

logging.disable(logging.CRITICAL)
TARGETS = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()]


def read(answer):
    return parse("$\\boxed{" + answer + "}$", TARGETS)


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("math_pairs.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    reasons = collections.Counter()
    wrong = 0
    for number, row in enumerate(rows, 1):
        found = verify(read(row["truth"]), read(row["answer"]))
        if found != row.get("math_verify", row["right"]):
            wrong += 1
            print(f"{path.name}:{number}: math-verify says {found} of {row['answer']!r} for {row['truth']!r}")
        if found != row["right"]:
            reasons[row.get("why", "no reason given")] += 1
    print(f"{len(rows)} pairs, {sum(reasons.values())} judged otherwise: {dict(reasons)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
