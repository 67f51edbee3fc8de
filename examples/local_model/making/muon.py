"""PyTorch's Muon, which makes its steps orthogonal in the type in which the machine multiplies matrices fastest."""

from __future__ import annotations

import torch
from torch import Tensor

from . import network


class Muon(torch.optim.Muon):
    """PyTorch's computes in bfloat16 everywhere, and a CPU that emulates it spends most of a step on that."""

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Take a step of Nesterov's momentum, orthogonal for each matrix."""
        if network.MATRICES is torch.bfloat16:
            super().step(closure)
            return
        for group in self.param_groups:
            momentum = group["momentum"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(weight.grad)
                mean = state["momentum_buffer"].lerp_(weight.grad, 1 - momentum)
                step = orthogonal(weight.grad.lerp(mean, momentum), group["ns_coefficients"], group["ns_steps"])
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(step, alpha=-group["lr"] * max(1.0, len(weight) / weight.shape[1]) ** 0.5)


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int) -> Tensor:
    """Return a matrix near to the orthogonal one of a matrix, by Newton and Schulz's iteration."""
    wide = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    x = wide / wide.norm().clamp(min=1e-7)
    a, b, c = coefficients
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x if wide is matrix else x.T
