"""Honest solver: measure the frontal film of the target, rewrite a claim only where a measurement contradicts it."""

import os
import re
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pydicom
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage as ndi
from skimage.morphology import skeletonize

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
MM = 0.6  # millimetres in a pixel of the film as it is measured
SIDES, ZONES = ("right", "left"), ("upper", "mid", "lower")
FINDINGS = r"""pleural_effusion: effusions? / pneumothorax: pneumothora / consolidation: consolidation|airspace
/ atelectasis: atelect / pulmonary_edema: edema / granuloma: granuloma / nodule: nodules? / enteric_tube: enteric|nasog
/ cardiomegaly: cardiomegaly|heart|cardiac silhouette / endotracheal_tube: endotracheal|\bett?\b / pacemaker: pacemaker
/ central_line: central (?:venous )?(?:catheter|line) / chest_tube: chest tubes?|pleural drains?"""
SAME = r"no (?:significant |interval )*change|not (?:significantly )*changed"
CHANGES = rf"""unchanged: unchanged|{SAME}|stable / increased: increas|larger|wors|progress / decreased: decreas|smaller
|improv / resolved: resol[vu]|cleared|no longer|remov / new: \bnew(?:ly)?\b|placed|developed"""
SEVERITIES = r"small: small / large: large\b / moderate: moderate / mild: mild / severe: severe|marked"
TIPS = r"""stomach: stomach / distal esophagus: esophagus / right main bronchus: bronchus / mid trachea: trachea\b
/ apex: \bap(?:ex|ical) / superior vena cava: vena cava|svc / right atrium: atrium / brachiocephalic vein: brachio
/ base: \bbas(?:e|al|ilar)\b"""
COUNTS = r"1: \b(?:one|single)\b / 2: \b(?:two|dual)\b / 3: \b(?:three|triple)\b"
NEGATION, PLACE = r"\b(?:no|not|without|absent|free of)\b", r"\b(upper|middle|mid|lower)[ -]+(?:lung )?(lobe|zone)"


def pick(table: str, text: str) -> str | None:
    """Return the first value whose words stand in the text."""
    rows = (row.strip().split(": ", 1) for row in table.replace("\n", "").split("/ "))
    return next((value for value, words in rows if re.search(words.strip(), text)), None)


def claim(sentence: str) -> dict[str, Any] | None:
    """Return the one claim of a sentence; None where it has none or several."""
    text = sentence.lower()
    kinds = [row for row in FINDINGS.split("/ ") if pick(row, text)]
    change, place = pick(CHANGES, text), re.search(PLACE, text)
    sides = [s for s in SIDES if re.search(rf"\b{s}\b", re.sub(r"right (?:main|atri)\w*", "", text))]
    out: dict[str, Any] = {"change": change, "severity": pick(SEVERITIES, text), "tip": pick(TIPS, text)}
    out["present"] = not (re.search(NEGATION, re.sub(SAME, "", text)) or change == "resolved" or "normal" in text)
    out["side"] = "bilateral" if "bilateral" in text else sides[0] if len(sides) == 1 else None
    out |= {"place": place and place[0], "zone": place and place[1].replace("middle", "mid")}
    return out | {"finding": pick(kinds[0], text), "count": int(pick(COUNTS, text) or 1)} if len(kinds) == 1 else None


def film(path: Path) -> NDArray[np.float32]:
    """Return a film, brightness 0 to about 1, at 0.6 mm a pixel."""
    if path.suffix == ".dcm":
        header = pydicom.dcmread(path)
        pixels = header.pixel_array.astype(np.float32)
        pixels = pixels.max() - pixels if header.PhotometricInterpretation == "MONOCHROME1" else pixels
        zoom = float((header.get("ImagerPixelSpacing") or header.PixelSpacing)[0]) / MM
    else:
        pixels = np.asarray(Image.open(path).convert("F"), np.float32)
        zoom = 25.4 / float(Image.open(path).info.get("dpi", (150, 150))[0]) / MM
    low, high = np.percentile(pixels, [0.5, 99.7])
    pixels = np.clip((pixels - low) / (high - low), 0, 1.2).astype(np.float32)
    return np.asarray(cv2.resize(pixels, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA))


def path_of_least_cost(cost: NDArray[Any], jump: int) -> NDArray[np.int64]:
    """Return the column in each row of the cheapest path from the first row to the last."""
    total, back, columns = cost.astype(np.float64), np.zeros(cost.shape, np.int64), cost.shape[1]
    for i in range(1, len(cost)):
        padded = np.pad(total[i - 1], jump, constant_values=1e9)
        steps = np.stack([padded[m : m + columns] + 0.004 * (m - jump) ** 2 for m in range(2 * jump + 1)])
        back[i], total[i] = steps.argmin(0) - jump, total[i] + steps.min(0)
    path = [int(total[-1].argmin())]
    for row in back[:0:-1]:
        path.append(path[-1] + int(row[path[-1]]))
    return np.array(path[::-1])


def half(picture: NDArray[Any], mid: int, side: str) -> NDArray[Any]:
    """Return the half of a picture on a side, columns from the midline outward."""
    return picture[:, mid::-1] if side == "right" else picture[:, mid:]


def chest(picture: NDArray[np.float32]) -> dict[str, Any]:
    """Return the landmarks of a film, device-free brightness, and per side the wall, lower edge and heart border."""
    hat = picture - cv2.morphologyEx(picture, cv2.MORPH_OPEN, cv2.getStructuringElement(2, (9, 9)))
    labels, _ = ndi.label(hat > 0.085, np.ones((3, 3)))
    strong, boxes = np.unique(labels[hat > 0.16]), ndi.find_objects(labels)
    line = np.isin(labels, [i for i in strong if i and max(b.stop - b.start for b in boxes[i - 1]) * MM > 13])
    rows, bare = picture.shape[0], picture.copy()
    near = cv2.dilate(line.astype(np.uint8), cv2.getStructuringElement(2, (5, 5))) > 0
    bare[near] = cv2.medianBlur((np.clip(picture, 0, 1) * 255).astype(np.uint8), 41)[near] / 255
    soft = ndi.gaussian_filter(bare, 2.5)
    inside = np.flatnonzero((soft > 0.05)[int(rows * 0.3) : int(rows * 0.7)].mean(0) > 0.5)
    first, last = (int(inside[0] + share * (inside[-1] - inside[0])) for share in (0.36, 0.64))
    mid = first + int(ndi.gaussian_filter1d(soft[int(rows * 0.1) : int(rows * 0.5)].mean(0), 15)[first:last].argmax())
    across, down = (ndi.gaussian_filter1d(soft, 1.5, axis=i, order=1) * 10 for i in (1, 0))
    out: dict[str, Any] = {"mid": mid, "line": line, "bare": bare, "rows": rows}
    for side in SIDES:
        grey, fall = half(soft, mid, side), half(down, mid, side)
        rise = half(across, mid, side) * (-1 if side == "right" else 1)
        width, top, end = grey.shape[1], int(rows * 0.06), int(rows * 0.8)
        cost = -np.clip(rise, 0, 1.5) + 0.6 * np.clip(ndi.uniform_filter1d(grey, 25, axis=1, origin=12) - 0.35, 0, 1)
        cost[:, : width // 4] = 3
        wall = np.pad(path_of_least_cost(cost[top:end], 3), (top, rows - end), mode="edge")
        wide = int(np.percentile(wall[int(0.35 * rows) : int(0.65 * rows)], 90))
        start = int(0.22 * wide)
        cost = -np.clip(fall - 0.5 * np.abs(rise), 0, 1.2)
        cost += 0.8 * np.clip(ndi.uniform_filter1d(grey, 41, axis=0, origin=20) - 0.4, 0, 1)
        cost[: int(0.45 * rows), : width // 2] += 0.5
        cost[: int(0.35 * rows)] = cost[int(0.95 * rows) :] = 3
        low = path_of_least_cost(cost.T[start:wide], 5)
        dome = int(np.percentile(low[: max(5, len(low) * 2 // 3)], 15))
        head = -fall[int(0.03 * rows) : int(0.4 * rows), int(0.3 * wide) : int(0.6 * wide)]
        apex = int(np.median(head.argmax(0))) + int(0.03 * rows)
        out[side] = {"grey": grey, "rise": rise, "wall": wall, "start": start, "low": low, "dome": dome, "apex": apex}
    out |= {"apex": min(out[s]["apex"] for s in SIDES), "base": max(out[s]["dome"] for s in SIDES)}
    for side in SIDES:
        add_heart(out, out[side], soft)
    out["width"] = sum(max(out[s]["wall"][out["apex"] + 30 : out[s]["dome"] + 10]) for s in SIDES)
    return out


def add_heart(c: dict[str, Any], s: dict[str, Any], soft: NDArray[np.float32]) -> None:
    """Add the border of mediastinum and heart on one side, and the mask of the lung."""
    first = int(c["apex"] + 0.45 * (s["dome"] - c["apex"]))
    last = max(first + 20, c["base"] if c["base"] - s["dome"] > 25 and s is c["left"] else s["dome"])
    grey, columns = s["grey"][first:last], np.arange(s["grey"].shape[1])[None]
    in_wall = columns < s["wall"][first:last, None]
    dark, white = np.percentile(grey[in_wall], 15), np.median(soft[first:last, c["mid"] - 8 : c["mid"] + 8])
    excess = np.where(in_wall, grey - (dark + 0.34 * (white - dark)), -0.3)
    cost = (np.cumsum(excess[:, ::-1], 1)[:, ::-1] - np.cumsum(excess, 1)) / 40
    cost += 0.4 * np.clip(s["rise"][first:last], -1.5, 0)
    cost[:, : int(10 / MM)] = 9
    border = path_of_least_cost(cost, 3)
    s["heart"] = int(np.percentile(border, 96))
    medial = np.full(c["rows"], int(28 / MM))
    medial[first:last] = np.maximum(border + 6, int(20 / MM))
    medial[last:] = border[-1]
    bottom = np.full(s["grey"].shape[1], s["dome"] + 40)
    bottom[s["start"] : s["start"] + len(s["low"])] = s["low"] - 6
    row = np.arange(c["rows"])[:, None]
    s["lung"] = (columns > medial[:, None]) & (columns < s["wall"][:, None] - 3) & (row < bottom) & (row > c["apex"])


def calcification(bare: NDArray[np.float32], lung: NDArray[np.bool_], span: float) -> tuple[float, int, int]:
    """Return likeness and contrast added up, row and column of what is most like a dense disc of 6 to 9 mm."""
    flat, found = bare - ndi.gaussian_filter(bare, 14), (0.0, 0, 0)
    for radius in (5, 6.25, 7.5):
        reach = int(radius * 1.75) + 1
        far = np.hypot(*np.mgrid[-reach : reach + 1, -reach : reach + 1])
        disc = ndi.gaussian_filter(np.clip(1 - (far / radius) ** 2, 0, None) ** 0.35, 1).astype(np.float32)
        match = cv2.matchTemplate(flat, disc, cv2.TM_CCOEFF_NORMED, mask=(far <= reach).astype(np.float32))
        like = np.pad(np.nan_to_num(match, posinf=0, neginf=0), reach)
        core, ring = far < radius * 0.6, (far > radius * 1.2) & (far <= reach)
        stands = cv2.filter2D(bare, -1, (core / core.sum() - ring / ring.sum()).astype(np.float32)) / span
        score = np.where(lung & (like > 0.84) & (stands > 0.2), like + stands, 0)
        found = max(found, (float(score.max()), *divmod(int(score.argmax()), score.shape[1])))
    return found


def tubes(c: dict[str, Any]) -> dict[Any, Any]:
    """Return the length of lines (pixels) over the shoulder, at the chest wall, below the diaphragm and midline."""
    (labels, _), keep = ndi.label(c["line"], np.ones((3, 3))), [False]
    for box in ndi.find_objects(labels):
        tall, wide = ((b.stop - b.start) * MM for b in box)
        centre = abs((box[1].start + box[1].stop) / 2 - c["mid"]) * MM
        keep.append(max(tall, wide) >= 24 or (centre < 60 and tall > 6 and not (wide > 9 and tall < 16)))
    y, x = np.nonzero(skeletonize(np.array(keep)[labels]))  # type: ignore[no-untyped-call]
    below, off, out = (y - c["apex"]) * MM, (x - c["mid"]) * MM, dict[Any, Any]()
    for side in SIDES:
        away = off * (-1 if side == "right" else 1)
        wall = (away > 35) & (below > 55) & (y < c[side]["dome"] + 60) & (y < c["rows"] - 3)
        out[side, "shoulder"], out[side, "drain"] = ((away > 45) & (abs(below) < 45)).sum(), wall.sum()
        out[side, "drain_top"] = float(np.percentile(below[wall], 5)) if wall.sum() > 40 else 0.0
    out["gut"] = (((y - c["left"]["dome"]) * MM > 40) & (off > -12) & (off < 150) & (y < c["rows"] - 5)).sum()
    steps = below[(abs(off) < 18) & (below > 20) & (below < 140)] / 10
    return out | {"windpipe": np.bincount(steps.astype(int), minlength=14).tolist()}


def measure(path: Path) -> dict[Any, Any]:
    """Return the measurements of a frontal film; by side and zone its brightness, streaks and grain."""
    c = chest(film(path))
    bare, mid, tall = c["bare"], c["mid"], c["base"] - c["apex"]
    lung = np.concatenate([c["right"]["lung"][:, :0:-1], c["left"]["lung"]], axis=1)
    dark = float(np.percentile(bare[lung], 15)) if lung.any() else 0.1
    span = max(float(np.median(bare[c["apex"] : c["base"], mid - 6 : mid + 6])) - dark, 0.1)
    out = tubes(c) | {"ratio": sum(c[s]["heart"] for s in SIDES) / c["width"]}
    score, y, x = calcification(bare, lung, span)
    out["stone"] = (score, SIDES[int(x > mid)], ZONES[int(np.clip(3 * (y - c["apex"]) / tall, 0, 2))])
    rough = ndi.gaussian_filter(np.abs(bare - ndi.gaussian_filter(bare, 3)), 6) / span
    streak, (v, u) = np.zeros_like(bare), np.mgrid[-30:31, -30:31].astype(np.float64)
    for angle in np.deg2rad((-25, -12, 0, 12, 25)):  # bands 3 to 6 mm thick and 30 mm long
        along, off = u * np.cos(angle) + v * np.sin(angle), (v * np.cos(angle) - u * np.sin(angle)) / 3
        kernel = (1 - off**2) * np.exp(-(off**2) / 2 - along**2 / 2 / 14**2)
        kernel -= kernel.mean()
        streak = np.maximum(streak, cv2.filter2D(bare, -1, kernel / np.abs(kernel).sum()) / span)
    level = (np.arange(c["rows"])[:, None] - c["apex"]) / tall
    for side in SIDES:
        for i, zone in enumerate(ZONES):
            part = c[side]["lung"] & (level >= i / 3) & (level < (i + 1) / 3 + (i == 2) * 0.2)
            grey, bands, grain = (half(layer, mid, side)[part] for layer in (bare, streak, rough))
            out[side, zone] = [1.0, 0.0, 0.0]
            if len(grey) >= 150:
                out[side, zone] = [(grey.mean() - dark) / span, np.percentile(bands, 99), np.median(grain)]
    return out


def heart(said: dict[str, Any], now: dict[Any, Any]) -> dict[str, Any]:
    """Return what the cardiothoracic ratio says of the heart against the claim; fluid at its side hides the border."""
    ratio = now["ratio"] - (0.02 if now["ap"] else 0.005)
    ranges = {"normal": (0, 0.505), "mild": (0.505, 0.575), "moderate": (0.575, 0.645), "severe": (0.645, 2)}
    low, high = ranges.get((said["severity"] or "enlarged") if said["present"] else "normal", (0.505, 2))
    if low - 0.02 <= ratio < high + 0.02 or any(now[s, "lower"][0] > 0.45 for s in SIDES):
        return {}
    right = next(name for name, (a, b) in ranges.items() if a <= ratio < b)
    return {"present": right != "normal", "severity": right if right != "normal" else None}


def device(said: dict[str, Any], now: dict[Any, Any]) -> dict[str, Any]:
    """Return the side, tip or number of a tube, lead or line that the picture shows against the claim."""
    kind, steps, pacer, new = said["finding"], now["windpipe"], now.get("pacemaker"), dict[str, Any]()
    if key := {"pacemaker": "shoulder", "chest_tube": "drain", "central_line": "shoulder"}.get(kind):
        small, big = sorted(SIDES, key=lambda s: now[s, key])
        mixed = key == "shoulder" and pacer and now.get("central_line")
        if now[big, key] > max(60, 1.6 * now[small, key]) and not mixed:
            new["side"] = big
        if kind == "central_line" and pacer in SIDES and now[SIDES[pacer == "right"], key] > 50:
            new["side"] = SIDES[pacer == "right"]
        side = new.get("side", said["side"]) or big
        if kind == "pacemaker":
            new["count"] = int(np.digitize(now[side, "shoulder"], (150, 300 if now.get("central_line") else 230))) + 1
        if kind == "chest_tube":
            new |= {"count": 1 + int(now[side, key] > 250), "tip": "apex" if now[side, "drain_top"] < 85 else "base"}
    if kind == "enteric_tube":
        new["tip"] = "stomach" if now["gut"] > 110 else "distal esophagus"
    if kind == "endotracheal_tube" and sum(steps) > 20 and steps[12] < 10:
        new["tip"] = "right main bronchus" if steps[6] > 5 + 15 * ("enteric_tube" in now) else "mid trachea"
    return {k: v for k, v in new.items() if v != said[k] and (k != "tip" or said["tip"])}


def shadow(said: dict[str, Any], now: dict[Any, Any]) -> dict[str, Any]:
    """Return the side, zone or severity of a shadow in the lung that the picture shows against the claim."""
    kind, side, zone, new = said["finding"], said["side"], said["zone"], {}
    if kind == "granuloma" and now["stone"][0] > 1.15:
        new = dict(zip(("side", "zone"), now["stone"][1:], strict=True))
    if kind == "atelectasis" and zone:
        other = {"mid": "lower"}.get(zone, "mid")
        small, big = sorted(SIDES, key=lambda s: now[s, zone][1])
        if side == "bilateral" and now[small, zone][1] < 0.6 * now[big, zone][1]:
            new["side"] = big
        if side in SIDES and now[side, other][1] > now[side, zone][1] + 0.01:
            new["zone"] = other
    if kind == "pulmonary_edema" and said["severity"]:
        grain = float(np.mean([now[s, z][2] for s in SIDES for z in ZONES]))
        low, high = {"mild": (0, 0.023), "moderate": (0.019, 0.029), "severe": (0.024, 1)}[said["severity"]]
        if not low <= grain <= high:
            new["severity"] = "mild" if grain < 0.021 else "moderate" if grain < 0.026 else "severe"
    return {k: v for k, v in new.items() if v != said[k]}


def corrected(line: str, now: dict[Any, Any]) -> tuple[dict[str, Any], str]:
    """Return the right values of the slots that the pictures contradict, and the sentence put right."""
    said = claim(line) or {"finding": "", "present": False}
    kind, judged = said["finding"], device(said, now) | shadow(said, now) if said["present"] else {}
    new = heart(said, now) if kind == "cardiomegaly" else judged
    said |= new
    if not new:
        return new, line
    if not said["present"]:
        return new, "The heart size is normal."
    name = kind.replace("_", " ").replace("line", "venous catheter").replace("granuloma", "calcified granuloma")
    place = said["place"] and (f"{said['zone']} zone" if "zone" in new else said["place"])
    old = said["change"] not in (None, "new")
    counts = {"pacemaker": ("single-lead", "dual-lead", "three-lead"), "chest_tube": ("one", "two", "three")}
    number = counts.get(kind, [None] * 3)[said["count"] - 1]
    words = [number, "new" if said["change"] == "new" else None, said["severity"], said["side"], place]
    tail = (f" with its tip in the {said['tip']}" if said["tip"] else "") + (f", {said['change']}" if old else "")
    return new, f"There is {' '.join(w for w in [*words, name] if w)}{tail}."


def main() -> None:
    """Read the target, correct its draft by what its frontal film shows, write it."""
    folder = max(DATA.glob("study_*"))
    technique, draft = (folder / "report.txt").read_text().split("FINDINGS:")
    lines = re.split(r"(?<=\.)\s+(?=[A-Z])", " ".join(draft.split("IMPRESSION:", maxsplit=1)[0].split()))
    claims = {c["finding"]: c["side"] or "yes" for c in map(claim, lines) if c and c["present"]}
    now = measure(min(folder.glob("view_*"))) | claims | {"ap": re.search(r"\bAP\b|PORTABLE|portable", technique)}
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "findings.txt").write_text("\n".join(corrected(line, now)[1] for line in lines) + "\n")


if __name__ == "__main__":
    main()
