"""Fit the X-ray reference's network to drawn films and write its weights.

    pip install torch==2.13.0        # the CPU build, in an environment of its own; no lock file names it
    PYTHONPATH=. python scripts/xray_reader/fit.py FILMS --minutes 60 [--threads 2] [--out reference.npz]

Every twelfth patient of the fine grid is held out; what the network says of those films is printed as it learns. Films
that are drawn meanwhile are taken in.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from network import Network, restore, save
from numpy.typing import NDArray
from targets import MAPS, OUTPUTS, UNKNOWN, Example, example
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 (its usual name)

BATCH, DECAY, WARM_UP = 16, 2e-2, 100
MAP_WEIGHT, HEAD_WEIGHT, LEAST_AMOUNT = 1.0, 0.3, 20.0
FINE_SHARE = 2.0
"""A film of the fine grid is taken so many times as often as one of the coarse."""
SHIFT = 16
"""Films are moved by up to so many pixels, in steps of a map's pixel."""


class Films:
    """The films to fit to and those held out; more are taken in as they are drawn."""

    def __init__(self, folder: Path) -> None:
        """Read what is there."""
        self.folder, self.read = folder, set[Path]()
        self.fitted, self.shares, self.held = list[Example](), list[float](), list[Example]()
        self.take()

    def take(self) -> None:
        """Read films drawn since; one that is being written is left for later."""
        for path in sorted(set(self.folder.glob("*.npz")) - self.read):
            if time.time() - path.stat().st_mtime < 5:
                continue
            self.read.add(path)
            grid, patient, _ = path.stem.split("_")
            if grid == "full" and int(patient) % 12 == 0:
                self.held.append(example(path))
            else:
                self.fitted.append(example(path))
                self.shares.append(FINE_SHARE if grid == "full" else 1.0)
        print(f"{len(self.fitted)} films to fit to, {len(self.held)} held out", flush=True)

    def batch(self, rng: np.random.Generator) -> list[Example]:
        """Return examples drawn by their shares."""
        shares = np.array(self.shares) / sum(self.shares)
        return [self.fitted[number] for number in rng.choice(len(self.fitted), BATCH, p=shares)]


def stacked(examples: list[Example]) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return pictures, maps, outputs of the halves and of the whole, and which films are portable."""
    pictures = torch.from_numpy(np.stack([one.picture for one in examples])).float()
    maps = torch.from_numpy(np.stack([one.maps for one in examples])).float() / 255
    heads = [torch.from_numpy(np.stack([getattr(one, part) for one in examples])) for part in OUTPUTS]
    return (pictures - 110) / 100, maps, heads[0], heads[1], torch.tensor([float(one.portable) for one in examples])


def varied(picture: Tensor, maps: Tensor, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return films moved, and their brightness, detail and noise changed."""
    step = picture.shape[2] // maps.shape[2]
    down, across = (int(number) for number in rng.integers(-SHIFT // step, SHIFT // step + 1, 2))
    picture, maps = picture.roll((step * down, step * across), (2, 3)), maps.roll((down, across), (2, 3))
    gamma, bright, detail = (
        torch.tensor(rng.uniform(low, high, (len(picture), 1, 1)), dtype=torch.float32)
        for low, high in ((0.8, 1.25), (0.9, 1.1), (0.6, 1.4))
    )
    picture = torch.stack([picture[:, 0].clamp(0, 1.3) ** gamma * bright, picture[:, 1] * detail], 1)
    return picture + torch.randn_like(picture) * 0.02 * float(rng.random()), maps


def map_loss(logits: Tensor, maps: Tensor) -> Tensor:
    """Return the loss of the maps: for zones cross-entropy, for findings a focal loss by how much of each there is.

    The focal loss is that of Law and Deng (CornerNet, 2018): a nodule of four pixels counts as much as an effusion.
    """
    found, zones = logits[:, : len(MAPS)], slice(len(MAPS), None)
    true, said = maps[:, : len(MAPS)], torch.sigmoid(found)
    there = true * (1 - said) ** 2 * F.logsigmoid(found)
    away = (1 - true) ** 4 * said**2 * F.logsigmoid(-found)
    amount = true.sum((0, 2, 3)).clamp(min=LEAST_AMOUNT)
    focal = -((there + away).sum((0, 2, 3)) / amount).mean()
    return MAP_WEIGHT * focal + F.binary_cross_entropy_with_logits(logits[:, zones], maps[:, zones])


def head_loss(said: Tensor, true: Tensor, part: str) -> Tensor:
    """Return the summed losses of a head's outputs where they are known."""
    total, start = said.sum() * 0, 0
    for number, count in enumerate(OUTPUTS[part].values()):
        target, row = true[..., number].reshape(-1), said[..., start : start + count].reshape(-1, count)
        start += count
        known = ~target.isnan() & (target != UNKNOWN) if count > 1 else ~target.isnan()
        if not known.any():
            continue
        if count == 1:
            total = total + 2 * F.smooth_l1_loss(row[known, 0], target[known], beta=0.1)
        else:
            total = total + F.cross_entropy(row[known], target[known].long(), label_smoothing=0.01)
    return total


@torch.no_grad()
def held_out(network: Network, films: list[Example]) -> str:
    """Return how well outputs are read: share right (of those present), or mean error (of the median)."""
    network.eval()
    _, halves, wholes = zip(*(network(*(stacked([one])[place] for place in (0, 4))) for one in films), strict=True)
    network.train()
    told = []
    for part, said in (("half", torch.cat(halves)), ("whole", torch.cat(wholes))):
        true, start = torch.from_numpy(np.stack([getattr(one, part) for one in films])), 0
        for number, (name, count) in enumerate(OUTPUTS[part].items()):
            target, row = true[..., number].reshape(-1), said[..., start : start + count].reshape(-1, count)
            start += count
            known = ~target.isnan() if count == 1 else target != UNKNOWN
            target, row = target[known], row[known]
            if count == 1 and len(target):
                error, spread = (row[:, 0] - target).abs().mean(), (target - target.median()).abs().mean()
                told.append(f"{name} {error:.3f} ({spread:.3f})")
            elif count > 1:
                right, there = row.argmax(1) == target, target > 0
                found = right[there].float().mean()
                told.append(f"{name} {right.float().mean():.2f} ({found:.2f} of {int(there.sum())})")
    return "; ".join(told)


def usual(films: list[Example]) -> dict[str, NDArray[np.float64]]:
    """Return the log of how often each class is met, by setting and head; not a number where a number is read."""
    found = {}
    for setting, portable in (("ap", True), ("pa", False)):
        for part, outputs in OUTPUTS.items():
            true = np.concatenate([np.atleast_2d(getattr(one, part)) for one in films if one.portable == portable])
            rows = []
            for number, count in enumerate(outputs.values()):
                classes = true[:, number][true[:, number] != UNKNOWN]
                often = np.bincount(classes.astype(int), minlength=count) + 0.5 if count > 1 else np.full(1, np.nan)
                rows.append(np.log(often / often.sum()))
            found[f"usual.{setting}.{part}"] = np.concatenate(rows)
    return found


def fit(films: Films, minutes: float, rate: float, out: Path, start: Path | None) -> None:
    """Fit for so many minutes, from saved weights if given; weights are written at every look at the held-out films."""
    torch.manual_seed(0)
    rng, network = np.random.default_rng(0), Network()
    if start:
        picture, _, _, _, portable = stacked(films.held)
        restore(network, start, picture, portable)
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=DECAY)
    began, looked, steps, spent = time.monotonic(), 0.0, 0, 0.0
    while spent < minutes:
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, (steps + 1) / WARM_UP) * (0.51 + 0.49 * np.cos(np.pi * spent / minutes))
        picture, maps, half, whole, portable = stacked(films.batch(rng))
        picture, maps = varied(picture, maps, rng)
        with torch.autocast("cpu", torch.bfloat16):
            logits, halves, wholes = network(picture, portable)
        heads = head_loss(halves.float(), half, "half") + head_loss(wholes.float(), whole, "whole")
        loss = map_loss(logits.float(), maps) + HEAD_WEIGHT * heads
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 2.0)
        optimizer.step()
        steps, spent = steps + 1, (time.monotonic() - began) / 60
        if spent - looked > minutes / 15 or spent >= minutes:
            looked = spent
            print(f"{spent:.1f} min, {steps} steps, loss {loss.item():.2f}, heads {heads.item():.2f}", flush=True)
            print(held_out(network, films.held), flush=True)
            save(network.eval(), usual(films.fitted), out)
            network.train()
            films.take()


def main() -> None:
    """Fit as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("films", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--rate", type=float, default=2e-3, help="the learning rate to begin with")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("reference.npz"))
    parser.add_argument("--start", type=Path, help="weights to go on from")
    told = parser.parse_args()
    torch.set_num_threads(told.threads)
    fit(Films(told.films), told.minutes, told.rate, told.out, told.start)


if __name__ == "__main__":
    main()
