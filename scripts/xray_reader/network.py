"""The network that reads frontal films, to be fitted; ``categories/xray_report_correction/reference.py`` runs it."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch
from targets import MAPS, OUTPUTS, SOLVER
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

CHANNELS = len(MAPS) + 6
PLACED = SOLVER.KNOWN["network"]["placed"]
CELLS, REDUCED, HIDDEN = 11, 6, 96


def layer(before: int, after: int, size: int = 3, step: int = 1) -> nn.Sequential:
    """Return a convolution with batch normalisation and ReLU."""
    convolution = nn.Conv2d(before, after, size, step, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after), nn.ReLU(inplace=True))


def head(features: int, part: str) -> nn.Sequential:
    """Return a head: two layers on pooled features."""
    last = nn.Linear(HIDDEN, sum(OUTPUTS[part].values()))
    return nn.Sequential(nn.Linear(features, HIDDEN), nn.ReLU(), nn.Dropout(0.1), last)


class Network(nn.Module):
    """See ``Network`` of the reference, which computes the same; names of layers are those of the weights' file."""

    def __init__(self) -> None:
        super().__init__()
        self.a = layer(2, 24, 5, 2)
        widths = (24, 32, 64, 96, 128)
        for number, (before, after) in enumerate(itertools.pairwise(widths), 1):
            setattr(self, f"b{number}", nn.Sequential(layer(before, after, 3, 2), layer(after, after)))
        self.d3, self.r2, self.d2 = layer(128 + 96, 96), layer(96, 48, 1), layer(48 + 64, 64)
        self.r1, self.d1, self.q = layer(64, 24, 1), layer(24 + 32, 40), layer(64, REDUCED, 1)
        self.m = nn.Conv2d(40, CHANNELS, 1)
        cells, maps = 2 * REDUCED * CELLS**2, 2 * CHANNELS
        self.half_head = head(128 + 4 * 64 + 2 * 96 + 40 + maps + 6 * len(PLACED) + cells + 2, "half")
        self.whole_head = head(128 + 2 * 64 + 2 * 96 + 40 + maps + cells + 1, "whole")

    def forward(self, picture: Tensor, portable: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return maps (logits), outputs of the halves (n, 2, outputs), outputs of the whole."""
        b1 = self.b1(self.a(picture))
        b2 = self.b2(b1)
        b3 = self.b3(b2)
        b4 = self.b4(b3)
        d3 = self.d3(torch.cat([doubled(b4), b3], 1))
        d2 = self.d2(torch.cat([doubled(self.r2(d3)), b2], 1))
        d1 = self.d1(torch.cat([doubled(self.r1(d2)), b1], 1))
        logits, places, view = self.m(d1), self.q(d2), portable[:, None]
        maps, halves = torch.sigmoid(logits), []
        for side in range(2):
            e1, e2, e3, here, cells = (half(one, side) for one in (d1, d2, d3, maps, places))
            middle = e2.shape[2] // 2
            row = [mean(b4), mean(e2), most(e2), most(e2[:, :, :middle]), most(e2[:, :, middle:])]
            row += [mean(e3), most(e3), most(e1), mean(here) * 10, most(here)]
            for zone in range(3):
                within = torch.minimum(logits[:, PLACED], logits[:, len(MAPS) + 3 * side + zone][:, None])
                row += [most(within).clamp(-8, 8) / 4, mean(torch.sigmoid(within)) * 50]
            row += [*celled(cells), view, torch.full_like(view, float(side))]
            halves.append(self.half_head(torch.cat(row, 1)))
        row = [mean(b4), mean(d2), most(d2), mean(d3), most(d3), most(d1), mean(maps) * 10, most(maps), view]
        return logits, torch.stack(halves, 1), self.whole_head(torch.cat([*row, *celled(places)], 1))


def doubled(picture: Tensor) -> Tensor:
    return F.interpolate(picture, scale_factor=2, mode="nearest")


def half(picture: Tensor, side: int) -> Tensor:
    middle = picture.shape[3] // 2
    return picture[..., middle * side : middle * (side + 1)]


def mean(picture: Tensor) -> Tensor:
    return picture.mean((2, 3))


def most(picture: Tensor) -> Tensor:
    return picture.amax((2, 3))


def celled(picture: Tensor) -> list[Tensor]:
    size = (picture.shape[2] // CELLS, picture.shape[3] // CELLS)
    return [F.avg_pool2d(picture, size).flatten(1), F.max_pool2d(picture, size).flatten(1)]


def save(network: Network, usual: dict[str, Any], path: Path) -> None:
    """Write the weights in half precision, batch normalisation folded in, and what films show usually."""
    held: dict[str, Any] = {"m.w": network.m.weight, "m.b": network.m.bias}
    for name, module in network.named_modules():
        if isinstance(module, nn.Sequential) and isinstance(module[0], nn.Conv2d):
            norm = module[1]
            gain = norm.weight / torch.sqrt(norm.running_var + norm.eps)
            held[name + ".w"] = module[0].weight * gain[:, None, None, None]
            held[name + ".b"] = norm.bias - norm.running_mean * gain
    for part in OUTPUTS:
        first, _, _, last = getattr(network, f"{part}_head")
        held |= {f"{part}.0.w": first.weight, f"{part}.0.b": first.bias}
        held |= {f"{part}.1.w": last.weight, f"{part}.1.b": last.bias}
    arrays = {name: tensor.detach().numpy().astype(np.float16) for name, tensor in held.items()}
    np.savez_compressed(path, **arrays, **{name: row.astype(np.float16) for name, row in usual.items()})


def restore(network: Network, path: Path, picture: Tensor, portable: Tensor) -> None:
    """Put saved weights back, to fit on from them; normalisation begins anew from the statistics of some films."""
    with np.load(path) as held:
        saved = {name: torch.from_numpy(held[name].astype(np.float32)) for name in held.files}
    network.m.weight.data, network.m.bias.data = saved["m.w"], saved["m.b"]
    for part in OUTPUTS:
        first, _, _, last = getattr(network, f"{part}_head")
        first.weight.data, first.bias.data = saved[f"{part}.0.w"], saved[f"{part}.0.b"]
        last.weight.data, last.bias.data = saved[f"{part}.1.w"], saved[f"{part}.1.b"]
    hooks = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Sequential) and isinstance(module[0], nn.Conv2d):
            module[0].weight.data = saved[name + ".w"]
            hooks.append(module[1].register_forward_pre_hook(_unchanged_by(saved[name + ".b"])))
    with torch.no_grad():
        network.train()(picture, portable)
    for hook in hooks:
        hook.remove()


def _unchanged_by(bias: Tensor) -> Any:
    """Return a hook that lets a normalisation add a bias and leave its input as it is otherwise."""

    def set_up(norm: nn.BatchNorm2d, inputs: tuple[Tensor]) -> None:
        spread, middle = inputs[0].std((0, 2, 3)), inputs[0].mean((0, 2, 3))
        norm.weight.data, norm.bias.data = spread + 1e-3, middle + bias

    return set_up
