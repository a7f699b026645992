"""Honest solver: a small convolutional network reads the frontal films; each drafted claim gets its likeliest reading.

Weights (``reference.npz``) and words (``reference.toml``) lie beside it; the data card says what the network was fitted
to. It reads no lateral view, and of the earlier studies the last film alone.
"""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
FINE_MM, COARSE_MM, SIZE = 0.65, 1.15, 352  # pixels of the film as read and as shown to the network; its width
KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())
KINDS = KNOWN["kinds"]
SIDES, GRADED = ("right", "left"), ("pleural_effusion", "pneumothorax")
AXES = (1, 2)  # rows and columns of a picture with channels
STEPS = ("increased", "decreased", "unchanged")
Picture = NDArray[Any]
Claim = dict[str, Any]
Reading = dict[str, Picture]  # log-probabilities of classes, or a number, by output
Film = tuple[list[Reading], Reading]  # what the network says of a film's right and left half, and of the whole


def pick(table: str, text: str) -> Any:
    """Return the first value of a table whose words stand in the text."""
    return next((value for value, words in KNOWN[table].items() if re.search(words, text)), None)


def claims(sentence: str) -> list[Claim]:
    """Return what a sentence claims: one finding or device with its slots, or several that are denied."""
    text = sentence.lower()
    kinds = [kind for kind, words in KNOWN["names"].items() if re.search(words, text)]
    sides = re.findall(r"\b(right|left)\b", re.sub(r"right (?:main|atri)\w*", "", text))
    said: Claim = {slot: pick(slot, text) for slot in ("change", "severity", "tip", "location")}
    denied = re.search(r"\b(?:no|not|without|absent|free of)\b", re.sub(KNOWN["change"]["unchanged"], "", text))
    said["present"] = not (denied or said["change"] == "resolved" or "normal" in text)
    said["side"] = "bilateral" if re.search("bilateral|both", text) else sides[0] if len(sides) == 1 else None
    said["count"] = int(pick("count", text) or 1)
    needed = {slot for kind in kinds for slot in ("side", "location", "tip") if slot in KINDS[kind]}
    if said["present"] and (len(kinds) != 1 or any(said[slot] is None for slot in needed)):
        return []
    return [said | {"finding": kind} for kind in kinds]


def film(path: Path) -> Picture:
    """Return a film as the network takes it: brightness and fine detail, (2, 352, 352), 1.15 mm a pixel."""
    if path.suffix == ".dcm":
        header = pydicom.dcmread(path)
        return shown(header.pixel_array, float(header.ImagerPixelSpacing[0]))
    picture = Image.open(path)
    return shown(np.asarray(picture.convert("F")), 25.4 / float(picture.info.get("dpi", (150, 150))[0]))


def shown(pixels: Picture, pixel_mm: float) -> Picture:
    """Return a film of these pixels as the network takes it."""
    low, high = np.percentile(pixels[::3, ::3], [0.5, 99.7])
    pixels, zoom = np.clip((pixels - low) / (high - low), 0, 1.2).astype(np.float32), pixel_mm / FINE_MM
    fine = cv2.resize(pixels, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA if zoom < 1 else cv2.INTER_LINEAR)
    detail = np.clip((fine - cv2.GaussianBlur(fine, (0, 0), 2 / FINE_MM)) * 5, -1, 1)
    zoom = FINE_MM / COARSE_MM
    both = [cv2.resize(one, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA) for one in (fine, detail)]
    top, left = ((SIZE - length) // 2 for length in both[0].shape)
    shift = np.array([[1.0, 0.0, left], [0.0, 1.0, top]])
    return np.stack([cv2.warpAffine(one, shift, (SIZE, SIZE), flags=cv2.INTER_NEAREST) for one in both])


class Network:
    """A U-shaped convolutional network with maps of findings and lung zones, and two heads that read them."""

    def __init__(self, path: Path) -> None:
        """Load the weights (half precision)."""
        with np.load(path) as held:
            self.held = {name: held[name].astype(np.float32) for name in held.files}

    def usual(self, portable: bool) -> Film:
        """Return what films of a setting show usually."""
        name = "ap" if portable else "pa"
        half, whole = (split(self.held[f"usual.{name}.{part}"], part) for part in ("half", "whole"))
        return [half, half], whole | {"portable": np.array([portable])}

    def layer(self, name: str, picture: Picture, step: int = 1) -> Picture:
        """Return a convolution, its batch normalisation folded in, and ReLU."""
        weights, bias = self.held[name + ".w"], self.held[name + ".b"]
        size = weights.shape[2]
        padded = np.pad(picture, ((0, 0), (size // 2, size // 2), (size // 2, size // 2)))
        rows, columns = (length // step for length in picture.shape[1:])
        total = np.repeat(bias, rows * columns).reshape(-1, rows, columns)
        for row in range(size):
            for column in range(size):
                seen = padded[:, row : row + rows * step : step, column : column + columns * step : step]
                total += np.tensordot(weights[:, :, row, column], seen, 1)
        return np.asarray(np.maximum(total, 0))

    def head(self, part: str, features: list[Picture]) -> Reading:
        """Return what a head reads from pooled features."""
        hidden = np.maximum(self.held[part + ".0.w"] @ np.concatenate(features) + self.held[part + ".0.b"], 0)
        return split(self.held[part + ".1.w"] @ hidden + self.held[part + ".1.b"], part)

    def read(self, picture: Picture, portable: bool) -> Film:
        """Return what a film shows."""
        levels = [self.layer("a", picture, 2)]
        for name in ("b1", "b2", "b3", "b4"):
            levels.append(self.layer(name + ".1", self.layer(name + ".0", levels[-1], 2)))
        _, b1, b2, b3, b4 = levels
        d3 = self.layer("d3", np.concatenate([doubled(b4), b3]))
        d2 = self.layer("d2", np.concatenate([doubled(self.layer("r2", d3)), b2]))
        d1 = self.layer("d1", np.concatenate([doubled(self.layer("r1", d2)), b1]))
        odds = np.tensordot(self.held["m.w"][:, :, 0, 0], d1, 1) + self.held["m.b"][:, None, None]
        maps = likely(odds)
        places = self.layer("q", d2)
        view, halves = np.array([portable], np.float32), list[Reading]()
        for side in (0, 1):
            columns = [slice(len(row[0]) // 2 * side, len(row[0]) // 2 * (side + 1)) for row in (d1[0], d2[0], d3[0])]
            e1, e2, e3 = (one[:, :, part] for one, part in zip((d1, d2, d3), columns, strict=True))
            middle, here = e2.shape[1] // 2, maps[:, :, columns[0]]
            row = [b4.mean(AXES), e2.mean(AXES), *(part.max(AXES) for part in (e2, e2[:, :middle], e2[:, middle:]))]
            row += [e3.mean(AXES), e3.max(AXES), e1.max(AXES), here.mean(AXES) * 10, here.max(AXES)]
            for zone in range(3):
                within = np.minimum(odds[KNOWN["network"]["placed"]], odds[len(maps) - 6 + 3 * side + zone])
                row += [within.max(AXES).clip(-8, 8) / 4, likely(within).mean(AXES) * 50]
            row += celled(places[:, :, columns[1]])
            halves.append(self.head("half", [*row, view, np.array([side], np.float32)]))
        row = [b4.mean(AXES), d2.mean(AXES), d2.max(AXES), d3.mean(AXES), d3.max(AXES), d1.max(AXES)]
        row += [maps.mean(AXES) * 10, maps.max(AXES), view, *celled(places)]
        return halves, self.head("whole", row) | {"portable": np.array([portable])}


def steady(network: Network, picture: Picture, portable: bool) -> Film:
    """Return what a film shows, on average over small shifts of it."""
    films = [network.read(np.roll(picture, shift, AXES), portable) for shift in KNOWN["network"]["shifts"]]
    parts = zip(*((*halves, whole) for halves, whole in films), strict=True)
    right, left, whole = ({name: np.mean([one[name] for one in part], 0) for name in part[0]} for part in parts)
    return [right, left], whole


def split(numbers: Picture, part: str) -> Reading:
    """Return a head's numbers as log-probabilities of classes, and numbers, by their names."""
    start, found = 0, Reading()
    for output, count in KNOWN["network"][part].items():
        row = numbers[start : start + count]
        found[output] = row - np.logaddexp.reduce(row) if count > 1 else row
        start += count
    return found


def likely(odds: Picture) -> Picture:
    """Return the probabilities of log-odds."""
    return np.asarray(1 / (1 + np.exp(-odds)))


def doubled(picture: Picture) -> Picture:
    """Return a picture with each pixel four times."""
    return picture.repeat(2, 1).repeat(2, 2)


def celled(picture: Picture) -> list[Picture]:
    """Return means and maxima of 11 x 11 cells of each channel."""
    cells = picture.reshape(len(picture), 11, picture.shape[1] // 11, 11, -1)
    return [cells.mean((2, 4)).ravel(), cells.max((2, 4)).ravel()]


def heart(whole: Reading) -> Picture:
    """Return log-likelihoods of a normal heart and of the three severities: bands round the measured ratio."""
    ratio, noise = float(whole["ctr_x"][0]), KINDS["cardiomegaly"]["extent"][1]
    if np.isnan(ratio):  # what is usual: nothing was measured
        return np.zeros(4)
    away = np.array([max(low - ratio, ratio - high, 0.0) for low, high in KNOWN["network"]["heart"]])
    return np.asarray(-(np.minimum(away / noise, 4) ** 2) / 2)


def seen(said: Claim, halves: list[Reading], whole: Reading) -> float:
    """Return the log-probability that the network gives to what a claim says of the film, whatever changed since."""
    kind, held = said["finding"], KINDS[said["finding"]]
    here = [said["present"] and said["side"] in (side, "bilateral") for side in SIDES]

    def both(output: str, value: int) -> float:  # of a class on the side named, and of none on the other
        return float(sum(halves[i][output][value if here[i] else 0] for i in (0, 1)))

    if "severity" in held:
        degree = held["severity"].index(said["severity"]) + 1 if said["severity"] else 0
        degrees = [0] if not said["present"] else [degree] if degree else [1, 2, 3]
        if kind in GRADED:
            return float(np.logaddexp.reduce([both(held["reads"], each) for each in degrees]))
        return float(np.logaddexp.reduce((heart(whole) if kind == "cardiomegaly" else whole["ede"])[degrees]))
    if "location" in held:
        output = "lob" if kind == "consolidation" and not whole["portable"][0] else held["reads"]
        place = held["location"].index(said["location"]) + 1 if said["present"] else 0
        numbers = sum(float(halves[i]["nod_n"][said["count"] - 1]) for i in (0, 1) if here[i] and kind == "nodule")
        return both(output, place) + numbers
    if kind == "chest_tube":
        tip = held["tip"].index(said["tip"])
        return both("tub", said["count"]) + sum(float(halves[i]["tub_t"][tip]) for i in (0, 1) if here[i])
    value = (
        1 + held["tip"].index(said["tip"]) if "tip" in held else said["count"] if "count" in held else said["present"]
    )
    return float(whole[held["reads"]][int(value)]) + (both(held["entry"], 1) if "side" in held else 0.0)


def extent(said: Claim, seen_now: Film) -> float:
    """Return the measured extent of a finding where a claim says that it is."""
    output = KINDS[said["finding"]]["extent"][0]
    if output in seen_now[1]:
        return float(seen_now[1][output][0])
    here = [i for i, side in enumerate(SIDES) if said["side"] in (side, "bilateral")]
    return float(np.mean([seen_now[0][i][output][0] for i in here]))


def likelihood(said: Claim, usual: Film, films: list[Film]) -> float:
    """Return the log-likelihood of a claim, given what films show usually, the film before if any, and this film."""
    total = seen(said, *films[-1]) - seen(said, *usual)
    if stepped(said, films):
        _, noise, least = KINDS[said["finding"]]["extent"]
        grown = extent(said, films[-1]) - extent(said, films[-2])
        away = {"increased": max(least - grown, 0), "decreased": max(least + grown, 0), "unchanged": grown}
        total -= min(abs(away[said["change"]]) / noise, 4) ** 2 / 4  # halved for the errors of two films
    return total


def stepped(said: Claim, films: list[Film]) -> bool:
    """Tell whether a claim states a change that two films show."""
    return len(films) > 1 and said["change"] in STEPS and "extent" in KINDS[said["finding"]]


def values(said: Claim, slot: str) -> list[Any]:
    """Return what a slot of a claim may hold; a left lung has no middle lobe, ``lobes`` where places are lobes."""
    if slot == "location" and said.get("lobes") and said["side"] == "left":
        return ["upper", "lower"]
    return list(STEPS) if slot == "change" else list(KINDS[said["finding"]].get(slot, ()))


def readings(said: Claim, usual: Film, *, steps: bool) -> list[tuple[Claim, float]]:
    """Return a drafted claim and what else may be true with one slot changed, each with its prior log-probability."""
    held, pool, out = KINDS[said["finding"]], dict[str, list[Claim]](), list[tuple[Claim, float]]()
    wrong = KNOWN["compared"] if steps else held["wrong"]
    if said["present"]:
        for slot in filter(said.get, wrong):
            pool[slot] = [said | {slot: one} for one in values(said, slot) if one != said[slot]]
        pool["status"] = [said | {"present": False, "change": None}]
    elif "denied" in held:
        wrong, pool["status"] = {"status": held["denied"]}, [said | {"present": True, "change": None}]
        for slot in ("side", "location", "severity"):
            if slot in held:
                pool["status"] = [one | {slot: value} for one in pool["status"] for value in values(one, slot)]
    for slot, others in pool.items():
        if others and slot in wrong:
            usually = np.array([seen(one, *usual) for one in others])
            out += zip(others, np.log(wrong[slot] / 100) + usually - np.logaddexp.reduce(usually), strict=True)
    return [(said, float(np.log(1 - sum(np.exp(prior) for _, prior in out)))), *out]


def worded(said: Claim, *, lobes: bool) -> str:
    """Return a sentence that claims this."""
    kind, name = said["finding"], said["finding"].replace("_", " ")
    if not said["present"]:
        return "Heart size is normal." if kind == "cardiomegaly" else f"There is no {name}."
    number = KINDS[kind]["counted"][said["count"] - 1] if "count" in KINDS[kind] else None
    words = [number, "new" if said["change"] == "new" else None, said["severity"], said["side"], name]
    plural = "s" if number in ("two", "three") or (said["side"] == "bilateral" and kind == "pleural_effusion") else ""
    place = f"{said['location']} {'lobe' if lobes and kind == 'consolidation' else 'zone'}"
    where = f" in the {place.replace('mid lobe', 'middle lobe')}" if "location" in KINDS[kind] else ""
    where += f" with its tip in the {said['tip']}" if said["tip"] else ""
    tail = f", {said['change']}" if said["change"] in STEPS else ""
    return f"There is {' '.join(word for word in words if word)}{plural}{where}{tail}."


def corrected(line: str, usual: Film, films: list[Film]) -> str:
    """Return a sentence, put right where other readings of its claims are likelier than the drafted ones."""
    best, lobes = list[Claim](), not films[-1][1]["portable"][0]
    said = [one | {"lobes": lobes and one["finding"] == "consolidation"} for one in claims(line)]
    for one in said:
        options = readings(one, usual, steps=stepped(one, films))
        scores = [prior + likelihood(other, usual, films) for other, prior in options] if options[1:] else [0.0]
        best.append(options[int(np.argmax(scores))][0])
    return line if best == said else " ".join(worded(one, lobes=lobes) for one in best)


def main() -> None:
    """Read the last two frontal films, correct the last draft by what they show, write it."""
    network, films = Network(Path(__file__).with_suffix(".npz")), list[Film]()
    for folder in sorted(DATA.glob("study_*"))[-2:]:
        technique, text = (folder / "report.txt").read_text().split("FINDINGS:")
        portable = bool(re.search(r"\bAP\b|(?i:portable)", technique))
        films.append(steady(network, film(min(folder.glob("view_*"))), portable))
    usual = network.usual(portable)
    lines = re.split(r"(?<=\.)\s+(?=[A-Z0-9])", " ".join(text.split("IMPRESSION:", maxsplit=1)[0].split()))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "findings.txt").write_text("\n".join(corrected(line, usual, films) for line in lines) + "\n")


if __name__ == "__main__":
    main()
