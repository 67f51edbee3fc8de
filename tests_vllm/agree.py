"""Whether the network that is trained says what transformers' Qwen3 says with the same weights. Runs in `.venv-vllm`.

    python agree.py

prints the greatest difference of two scores, and how great scores are.
"""

import json
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from local_model.making import network as made
from local_model.making.export import whole


def main():
    torch.manual_seed(3)
    made.MATRICES = torch.float32
    own = made.Network(made.Shape(vocabulary=9291)).eval()
    # A fresh network's layers add nothing yet.
    for layer in own.layers:
        for weight in (layer.o_proj, layer.down_proj):
            torch.nn.init.normal_(weight, std=weight.shape[1] ** -0.5)
    theirs = whole(own)
    skills, inputs = torch.randint(9, 9000, (2, 40)), torch.randint(9, 9000, (2, 3, 20))
    lengths = torch.tensor([40, 31])
    greatest = 0.0
    with torch.no_grad():
        states = own(skills, inputs, lengths)
        scores = own.logits(states.inputs[-1].flatten(0, 1)).view(2, 3, 20, -1)
        for b, length in enumerate(lengths.tolist()):
            for q in range(3):
                text = torch.cat([skills[b, :length], inputs[b, q]])[None]
                greatest = max(greatest, (theirs(text).logits[0, length:] - scores[b, q]).abs().max().item())
    print(json.dumps({"difference": greatest, "scores": scores.abs().max().item()}))


if __name__ == "__main__":
    main()
