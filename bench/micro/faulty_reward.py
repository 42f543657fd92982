"""A reward that takes call_ms, with faults: 1 % of the calls hang and 1 % crash.

"transient": at random. "permanent": the same responses at every call.
"""
import os
import random
import time

source = random.SystemRandom()


def compute_score(data_source, solution_str, ground_truth, extra_info, call_ms):
    dice = 50
    if data_source == "permanent":
        dice = int(solution_str) % 100
    if data_source == "transient":
        dice = source.randrange(100)
    if dice == 0:
        time.sleep(1000)
    if dice == 1:
        os.abort()
    time.sleep(call_ms / 1000)
    return 1.0
