"""Scores countdown answers as TinyZero does: 1 when the formula makes the target of the numbers, 0.1 when there is a formula, else 0."""

import ast
import json
from fractions import Fraction

OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b}


def value_of(node, used):
    """The exact value of a formula of numbers, + - * / and brackets; whatever else is a ValueError."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        return OPERATORS[type(node.op)](value_of(node.left, used), value_of(node.right, used))
    if isinstance(node, ast.Constant) and type(node.value) is int:
        used.append(node.value)
        return Fraction(node.value)
    raise ValueError("not a formula")


def compute_score(data_source, solution_str, ground_truth, extra_info):
    task = json.loads(ground_truth) if isinstance(ground_truth, str) else ground_truth
    begin, end = solution_str.rfind("<answer>"), solution_str.rfind("</answer>")
    if begin < 0 or end < begin:
        return 0.0
    formula = solution_str[begin + len("<answer>") : end].strip()
    used = []
    try:
        if len(formula) > 200:
            return 0.0
        value = value_of(ast.parse(formula, mode="eval").body, used)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return 0.0
    left = list(task["numbers"])
    for number in used:
        if number not in left:
            return 0.1
        left.remove(number)
    return 1.0 if value == task["target"] else 0.1
