"""What a model does with skills that it has not seen: `python -m local_model.making.evaluate MODEL`.

Each condition of `conditions.py` is a number of documents with one input each; the whole reply has to be right, to the
letter. Greedy, through transformers.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BatchEncoding

from .conditions import CONDITIONS, Case, Condition, case

MASTERED = 0.9  # a condition with a smaller share is listed as a failure


class Model:
    """A model in a folder, asked through transformers."""

    def __init__(self, folder: Path, *, batch: int = 16) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.batch = batch

    def right(self, cases: Sequence[Case]) -> int:
        """Count the cases to which the greedy reply is the wanted one.

        It is if each token of the wanted reply is the likeliest after those before it, which one pass shows.
        """
        prompts = [
            self.tokenizer.apply_chat_template(c.messages, tokenize=False, add_generation_prompt=True) for c in cases
        ]
        order = sorted(range(len(cases)), key=lambda at: len(prompts[at]))
        found = 0
        for start in range(0, len(order), self.batch):
            part = order[start : start + self.batch]
            found += self._right([prompts[at] for at in part], [cases[at].reply for at in part])
        return found

    @torch.inference_mode()
    def _right(self, prompts: list[str], replies: list[str]) -> int:
        wanted = [self._ids([reply])["input_ids"][0] for reply in replies]
        most = max(map(len, wanted)) + 1
        given = self._ids([f"{a}{b}" for a, b in zip(prompts, replies, strict=True)], return_tensors="pt", padding=True)
        scores = self.model(**given, logits_to_keep=most + 1).logits
        said = scores.argmax(-1)
        end = self.model.generation_config.eos_token_id
        count = 0
        for row, reply, ids in zip(said.tolist(), replies, wanted, strict=True):
            written = self.tokenizer.decode(ids, skip_special_tokens=True)
            count += row[-len(ids) - 1 :] == [*ids, end] and same(written, reply)
        return count

    def _ids(self, texts: list[str], **more: Any) -> BatchEncoding:
        return self.tokenizer(texts, add_special_tokens=False, return_token_type_ids=False, **more)


def same(said: str, wanted: str) -> bool:
    """Whether a reply is the wanted one, but for spaces at the ends of lines, which DSPy strips as well."""
    return [line.strip() for line in said.strip().splitlines()] == [
        line.strip() for line in wanted.strip().splitlines()
    ]


def interval(right: int, n: int) -> tuple[float, float]:
    """Wilson's interval of 95 %."""
    z, share = 1.96, right / n
    middle, width = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return (middle - width) / (1 + z * z / n), (middle + width) / (1 + z * z / n)


def evaluate(model: Model, conditions: Sequence[Condition], n: int, seed: int) -> list[dict[str, Any]]:
    """Share of right answers per condition, printed when it is measured."""
    rows = []
    for condition in conditions:
        began = time.monotonic()
        cases = [case(condition, number, seed) for number in range(n)]
        right = model.right(cases)
        low, high = interval(right, n)
        met = condition.target is None or (
            right / n <= condition.target if condition.most else right / n >= condition.target
        )
        rows.append(
            {
                "condition": condition.name,
                "right": right / n,
                "n": n,
                "low": low,
                "high": high,
                "target": condition.target,
            }
        )
        aim = (
            ""
            if condition.target is None
            else f"  target {'at most' if condition.most else 'at least'} {condition.target:.2f}"
        )
        print(
            f"{condition.name:42} {right / n:.3f}  ({low:.3f} to {high:.3f}){aim}{'' if met else '  missed'}"
            f"  {time.monotonic() - began:.0f} s",
            flush=True,
        )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the rows as the model card shows them."""
    lines = ["| condition | right | 95 % | documents | target |", "|---|---|---|---|---|"]
    most = {condition.name for condition in CONDITIONS if condition.most}
    for row in rows:
        aim = ""
        if row["target"] is not None:
            upper = row["condition"] in most
            missed = row["right"] > row["target"] if upper else row["right"] < row["target"]
            aim = f"at {'most' if upper else 'least'} {row['target']:.2f}{', missed' if missed else ''}"
        figures = f"{row['right']:.3f} | {row['low']:.3f} to {row['high']:.3f} | {row['n']}"
        lines.append(f"| {row['condition']} | {figures} | {aim} |")
    return "\n".join(lines)


def failures(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the conditions that a model does not master as a list, worst first."""
    most = {condition.name for condition in CONDITIONS if condition.most}
    weak = sorted(
        (row for row in rows if row["right"] < MASTERED and row["condition"] not in most), key=lambda row: row["right"]
    )
    return "\n".join(f"- {row['right']:.2f}: {row['condition']}" for row in weak) or "- none"


def with_figures(card: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Replace the card's table of conditions and its list of failures."""
    card = re.sub(r"\| condition \|.*\n(?:\|.*\n)*", lambda _: table(rows) + "\n", card, count=1)
    head = f"Below {MASTERED:.2f}:\n\n"
    return re.sub(rf"{re.escape(head)}(?:- .*\n)*", lambda _: head + failures(rows) + "\n", card, count=1)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="test a model on skills that it has not seen")
    parser.add_argument("model", type=Path)
    parser.add_argument("--n", type=int, default=400, help="documents a condition")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="conditions whose name holds this")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--card", type=Path, help="replace the figures in this model card")
    given = parser.parse_args()
    chosen = [condition for condition in CONDITIONS if given.only in condition.name]
    rows = evaluate(Model(given.model), chosen, given.n, given.seed)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    if given.card:
        given.card.write_text(with_figures(given.card.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
