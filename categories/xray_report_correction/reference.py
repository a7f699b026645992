"""Honest solver: fit a mean chest to frontal films, measure by learned weights, take each claim's likeliest reading."""

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

DATA = Path(os.environ.get("HAB_DATA", "/workspace/data"))
OUT = Path(os.environ.get("HAB_SUBMISSION", "/workspace/submission"))
MM, STEP, MARGIN = 0.7, 1.4, 0.3  # mm in a pixel of film and coarse film; log-probability by which a new reading leads
Picture = NDArray[Any]
Claim = dict[str, Any]
Measures = dict[str, float]
SIDES = ("right", "left")
FINDINGS = r"""pleural_effusion: effusions? / pneumothorax: pneumothora / consolidation: consolidation|airspace
/ atelectasis: atelect / pulmonary_edema: edema / granuloma: granuloma / nodule: nodules? / enteric_tube: enteric|nasog
/ cardiomegaly: cardiomegaly|heart|cardiac silhouette / endotracheal_tube: endotracheal|\bett?\b / pacemaker: pacemaker
/ central_line: central (?:venous )?(?:catheter|line) / chest_tube: chest tubes?|pleural drains?
/ hiatal_hernia: hernia / sternal_wires: sternal|sternotomy"""
SAME = r"no (?:significant |interval )*change|not (?:significantly )*changed"
CHANGES = rf"""unchanged: unchanged|{SAME}|stable / increased: increas|larger|wors|progress|interval enlarge
/ decreased: decreas|smaller|improv / resolved: resol[vu]|cleared|no longer|remov|returned
/ new: \bnew(?:ly)?\b|placed|developed"""
SEVERITIES = r"small: small\b / large: large\b / moderate: moderate / mild: mild / severe: severe|marked"
TIPS = r"""stomach: stomach / distal esophagus: esophagus / right main bronchus: bronchus / mid trachea: trachea\b
/ apex: \bap(?:ex|ical) / superior vena cava: vena cava|svc / right atrium: atrium / brachiocephalic vein: brachio
/ base: \bbas(?:e|al|ilar)\b"""
COUNTS = r"1: \b(?:one|single)\b / 2: \b(?:two|dual)\b / 3: \b(?:three|triple)\b"
NEGATION = r"\b(?:no|not|without|absent|free of)\b"
# Key and slots of each kind that is measured: "slot percent values", the percent of development drafts it was wrong in.
KINDS = """pleural_effusion: eff: side 9 right,left,bilateral; severity 25 small,moderate,large; present 17
/ pneumothorax: ptx: side 9 right,left; severity 10 small,moderate,large; present 25
/ pulmonary_edema: ede: severity 50 mild,moderate,severe; present 13 / hiatal_hernia: her: present 50
/ pacemaker: pac: side 20 right,left; count 36 1,2,3 / endotracheal_tube: ett: tip 55 mid trachea,right main bronchus
/ enteric_tube: ent: tip 60 stomach,distal esophagus / chest_tube: tub: side 16 right,left; tip 10 apex,base; count 36
 1,2 / central_line: cvl: side 36 right,left; tip 25 superior vena cava,right atrium,brachiocephalic vein"""
CHANGED = {"increased": 1, "unchanged": 0, "decreased": -1}  # wrong in 25 of 100
DENIED_WRONGLY = {"pleural_effusion": 0.11, "pneumothorax": 0.12, "pulmonary_edema": 0.04}
DEVICES = ("endotracheal_tube", "enteric_tube", "central_line", "chest_tube", "pacemaker", "sternal_wires")
LEVELS = {"eff": (1.2, 2.0, 2.7), "ptx": (1.08, 1.66, 2.3), "ede": (0.35, 0.65, 0.95)}
STEPS = {"eff": 0.55, "ptx": 0.5, "ede": 0.3}  # how far apart a stated change leaves two films
# Measurement: cells it is read from: unit of its weights, intercept, and its offset, slope and noise over what is true.
TABLE = """eff right: fluid right: 0.0203 -0.290 0.139 0.738 0.453
/ eff left: fluid left: 0.035 -2.152 0.080 0.843 0.358 / ptx right: air right: 0.0287 0.610 0.188 0.501 0.331
/ ptx left: air left: 0.025 -0.066 0.244 0.473 0.287 / ede: both: 0.0139 1.397 0.026 0.866 0.128
/ her: heart: 0.0143 -0.428 0.053 0.201 0.095 / cvl side: top: 0.0101 0.187 0.159 0.607 0.276
/ cvl superior vena cava: tip: 0.0261 0.135 0.146 0.691 0.275 / cvl right atrium: tip: 0.00493 -0.122 0.099 0.687 0.166
/ cvl brachiocephalic vein: tip: 0.00688 0.797 0.107 0.447 0.178 / tub side: all: 0.0133 0.608 0.189 0.666 0.177
/ ett right main bronchus: airway: 0.00487 0.051 0.328 0.352 0.237 / ent stomach: gut: 0.0173 -0.340 0.186 0.603 0.182
/ tub apex: all: 0.00826 0.356 0.234 0.616 0.206 / tub count: all: 0.0284 -0.174 0.137 0.189 0.232
/ pac side: top: 0.00668 0.561 0.125 0.798 0.182 / pac count: leads: 0.021 0.114 0.737 0.610 0.377"""
LEARNED = {row.split(": ")[0]: row.split(": ")[1:] for row in TABLE.replace("\n", " ").split(" / ")}
# The mean chest and how far to trust it (14 x 16 each), then the weights in the table's order; one sign is one number.
NUMBERS = r"""(*6::HVUFA=1)(.;AFMW``SQLE8+<AJWWXdbA9BJB;>HWJ<F``628IG<BSXC5=^^01;RUAG[RD68[j43=RZFK[D<::`m>9:DWIN[@=??
cnR@<>VIM]>;>Kip[MA?TGHX<:APltd[PDLCCO:=AMowgbYJC??E9EILqzhcYI>===JX`_r|fZVN>;:?Vdijw}chgWF:8EZino|}npgVI99I]lsp}|pofVF7
}l;=:-++17:Cz}S7>>?9<:?@>89h:@:9=6A:@L3<>7>:46I:=8L`?4?F91++G=95L[3*0:7.))@C56;D,(,372.0;:<;/62,.4538511D@3.12042250,1GG
9-,0.4113.+1JQ;3--.61/0-*,JS;95//:4/.-,*DK7:80/<8.3762FU2-098?=2>A@9MU-<KGD?D:CFE>QR@XRDC?A>GLP;OKCSIBAAFTLJTw[KgTROu>ZP
6TPOmWbIkUiHYRvWq}{{[_D>DOOfZRU:dTPLCOUGTG`HIESQFXVKPRTMBCXM@IBVTSRURRVJ4AYVOriNQALRLD]OM}RZH_F^NOh_R]ehkZoUM:6E_`ELLb8R
AiTLN]MXQ:PS[QN^UMQdUT?PI[^M]SNRGTRQQTRP^]ZWWO9-SVCJNSXORONXGVNWBXT`K[WVILXVJGNOMQPYPNS]RQQRRQMPTPQTURSU[RSVbYQU`UNVaZOS
X^^VTRp}UQXbUUJSQRQSPVKSQXITNSTTOTPJUVTOSWIMNROMOQOPQTLNRSMMOSMOMQMMPSSPMNMPNPMQPNQRRSRSQ`YUH^S()ETCWNP^ZJRGaJSIYLQRVJOJ
[RHVUHLVQKR[bWO]^WN_PSRVRSQUWaPTQ^UQT_aXS^aOOTWMVOKSY[U[mUVUYTRoaSRLOYWSPXSQQUQSQWQLPVQROWZKFPOKLRPLSRSJNRRINNPLOMQQNNPM
OPNPPPRNPOOSRRPRST[V=I8Sg1T^X=LO+YOT3};P7oENLjGMMb>_SUQMRTdIKNUWWSLLEUSNNNRS[[NX`aNQU^RLNVUQH^XLO^YNRQRRVQRD?UTVROPRRTTQ
SSNDd]^UPRPNRRQPRRTQOQRTSPPQQPSUXYod]TRTUTPPQRQRSRQQRQQQSSQRRZlS8(5IRVTUSTSRRRQQSUTPPTSOOQOUjY@GPWXUPOOPRTRSPQRRQRRQVYRR
RDRREKM?UVTaRPXRRRRRV]gaTSRJFJWSLc[aPMMIHQU]aPVRVGFFNQXaZ]P)*>ESRJY]XNSRQLRTg]^YOY[ZOTTUQVTSRPNMNSUXVVTRQSPORNSXURRPPQSP
RUTRRRSPKSFRWRSTTRPNRQRSTRRRQPU[BGM[WVvINMOSVO(aLNQOJlIBHX[GHMPPUSRNOYF_PO[pLbMLJRR_TRWINH:KVOUQXWURRPPQUqLRRRSQRSSRRPPR
OSRSRQQQQSSQRQRRRRSPRSTSSSSRSRSPTTSSTTSTSOTSUUSTOSZSVUUQQOSWTTUVPROR`SSTTROUNVRRRSTQTRLRSRUPPONQRQQMRRRVHPOKEPTRUNPPMQLM
VOOQONORPSOONOMLPQRUPNQNQMMB}PNQQKAB9TPPUMJAIGQSQRRRRSK`TQQOVQSRSRTTUVPQSRPRTRPPSRRPPUSPROOSQPRTSRRSWOOQSTQQOQ?QSRURN_QK
UPRQQQUT,TPSNNPTN<UQTTRSRP2WRTRMPSR6WTVWNSZOTYX_bLMTN]ZYmsSRPRAZWgb`YTQDZ]dbYMTZZZ`cgYQTR_bfd^zb]C`gf[uaMcFXXLmf@T[PWQRO
RJW}DQUTSRSPORSUUPUUSOSTSSRQSSRSPQPRQTVPLPPOOPRRMPPPPNMNROOZNNJINQRUDNKLKTUUPZMNKKXUSUFNNKKQYN[^NOOOQWMRcOPNKWXV[UPRNPVS
RQYRSQTTQTN^QSQSTUK]_QRPQQZOOTTRSRRXPQQQNQQDUb2NMMSLqmdeQSXM]}XYYNSRVRUOAGU}[RSNXONJC0TUSRSSTUWOVORRQRSQQRSUNJRSRSVWWV<I
`gQSQJSW]EGe_SSRRLY[I=PQQSQXQX_JFSQRQQU^]_GTKRQTRQQ_fB?NTSSMOQX_;85QTSQPSUNH8:X[MSRTSMKFK]_EKNLLDRQTROSRMWOPRQROXLPNKRVT
W`M?TXORSO]]ISXTRQPVphWDUbURTMba]WNOOSOO[fjJSHRSSSmliLLVTVXMXRLKTYVOWXS@BGNHRNUSNOMOQQTPTVRKYTY[OROURKTHNERTEPS?RLUMOPRO
IKETONRMSQLLRm}QRRQQURRSRRRX@RTPRQRNQQOSTSGRSURSPGSPRPQVRRQQPQUURQRPSSRSQPSTSSROMYTSUUOMaVOQLQLl]VOA>^p`_M=1(|dbd/?Lmkfc
SRTSQRRdbTVmCSELW`UX(^YVTLMRQTXVRQRUSSRQTXNVjMUROOeaUp`P5RTR=Wcidb*bQQVGMgj`rEVRPPVK]f_eETNRP]@4Q^J:UQS`WN83=;HSTQVXN@(=
20NSWQUQL_7(>WIDKURTVB>Kb>NRKSM<RQTRUURfONZQSRTOQMPN5MSUTQSPQNPURRRSRRRRRSRRPORQRJURPVTdSPSSaU]]YZERQQQNDSUWP=PSRROUUZVX
KQRUUM[bPRY^SROPMSWQOT[VQUQRTSXQR[YQQQRTSTQSSaVFVSUPVOQX^(E^RQSMRTSRSRR_MRRRYRRMZbXJWS=_cRRRRRRRMH>HSXRSPSMHLRLWVVYZZFES
UMN^WWVUQQNPNUXd]ZQQ;NMOSPPMQTONQNRWUSUNQQNONONPQPQOQRUSTTUUTWPRTOMNPNOQNOTVUUVUTSSURRMNOPNMIQPRTTTYTSTUSQQ][SEHBLGRRUTR
QF`^XWU[@c^^KGK(GTQSQQRE^hIYPGFrR_gPizNQRONUOdhUiJLF0TPTORQRMNy_K_TPcNQ`SNPOROSOPM@PSRRQTRSSYSTUOOQRRSUVTWOOOUUYWVRQTSTS
VWRPSRRTTTQW[SSSUSPRHNBMRSUMTR]4HMQSQISQK?LKQTTMPPQPWVQRRKSASDMWRRSOMNPCKSSSPORL(MUSRSOTQI=USSRTTSQQYpSSTUU]RYf]QVVUV^U`
ebIUTVU]SV^cQTRTRbQ[ZUPRSST`R][QMTXPUVSTWSQWKM]ZUROSQ]UOVhOMN[DATRAScVSHUUNRRQRSd"""
SIGNS = np.array([ord(sign) - 40 - (sign > "\\") for sign in NUMBERS.replace("\n", "")], np.float32)


def pick(table: str, text: str) -> str | None:
    """Return the first value whose words stand in the text."""
    rows = (row.strip().split(": ", 1) for row in table.replace("\n", "").split("/ "))
    return next((value for value, words in rows if re.search(words.strip(), text)), None)


def claim(sentence: str) -> Claim | None:
    """Return the one claim of a sentence; None where it has none or several."""
    text = sentence.lower()
    kinds = [str(pick(row, text)) for row in FINDINGS.split("/ ") if pick(row, text)]
    change, sides = pick(CHANGES, text), re.findall(r"\b(right|left)\b", re.sub(r"right (?:main|atri)\w*", "", text))
    out: Claim = {"change": change, "severity": pick(SEVERITIES, text), "tip": pick(TIPS, text)}
    out["present"] = not (re.search(NEGATION, re.sub(SAME, "", text)) or change == "resolved" or "normal" in text)
    out["side"] = "bilateral" if re.search("bilateral|both", text) else sides[0] if len(sides) == 1 else None
    return out | {"finding": kinds[0], "count": int(pick(COUNTS, text) or 1)} if len(kinds) == 1 else None


def film(path: Path) -> Picture:
    """Return a film, brightness 0 to about 1, at 0.7 mm a pixel."""
    if path.suffix == ".dcm":
        header = pydicom.dcmread(path)
        pixels, zoom = header.pixel_array, float(header.ImagerPixelSpacing[0]) / MM
    else:
        pixels = np.asarray(Image.open(path).convert("F"))
        zoom = 25.4 / float(Image.open(path).info.get("dpi", (150, 150))[0]) / MM
    low, high = np.percentile(pixels[::3, ::3], [0.5, 99.7])
    pixels = np.clip((pixels - low) / (high - low), 0, 1.2).astype(np.float32)
    return np.asarray(cv2.resize(pixels, None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA))


def halved(picture: Picture) -> Picture:
    """Return a picture at half its resolution."""
    return np.asarray(cv2.resize(picture.astype(np.float32), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))


def pooled(picture: Picture, rows: int, columns: int) -> Picture:
    """Return the means of a picture's cells, one row after the other."""
    return np.asarray(picture.reshape(rows, len(picture) // rows, columns, -1).mean((1, 3))).ravel()


def sampled(picture: Picture, frame: list[float], across: Picture, down: Picture) -> Picture:
    """Return a picture in a chest's frame: across -1 to 1 between the walls, down 0 to 1 from apex to dome."""
    x = np.tile(frame[0] + frame[1] * across, (len(down), 1)).astype(np.float32)
    y = np.tile((frame[2] + (frame[3] - frame[2]) * down)[:, None], (1, len(across))).astype(np.float32)
    return np.asarray(cv2.remap(picture.astype(np.float32), x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE))


def registered(picture: Picture) -> list[float]:
    """Return a chest's frame on the coarse film (midline, half width, apex, dome) by fitting the mean chest to it."""
    bones = halved(cv2.morphologyEx(picture, cv2.MORPH_OPEN, cv2.getStructuringElement(2, (9, 9))))
    smooth, soft = ndi.gaussian_filter(bones, 3 / STEP), cv2.GaussianBlur(bones, (0, 0), 2.0)
    rows, columns = bones.shape
    body = np.flatnonzero((smooth > 0.05)[int(rows * 0.3) : int(rows * 0.7)].mean(0) > 0.5)
    first, last = (int(body[0] + share * (body[-1] - body[0])) for share in (0.36, 0.64))
    middle = first + int(ndi.gaussian_filter1d(smooth[rows // 10 : rows // 2].mean(0), 8)[first:last].argmax())
    lateral = (middle + np.linspace(0.24, 0.48, 16) * (body[-1] - middle)).astype(int)
    fall = ndi.gaussian_filter(bones, (2.5 / STEP, 3 / STEP), order=(1, 0))[int(0.03 * rows) : int(0.35 * rows)]
    apex = float(np.median(fall[:, lateral].argmin(0))) + int(0.03 * rows) + 6.8
    mean, trust = (cv2.resize(one, (28, 32)) for one in SIGNS[:448].reshape(2, 16, 14) / 84)
    trust = (trust + 0.054) / (trust + 0.054).sum()
    mean = mean - (mean * trust).sum()

    def likeness(frame: list[float]) -> float:
        seen = sampled(soft, frame, np.linspace(-1.1, 1.1, 28), np.linspace(-0.2, 1.4, 32))
        seen = seen - (seen * trust).sum()
        return float((seen * mean * trust).sum() / np.sqrt((seen**2 * trust).sum()))

    best, widths, depths = [middle - 2.0, 0.0, apex, 0.0], np.linspace(0.34, 0.46, 7), np.linspace(0.5, 0.76, 27)
    best = max(([best[0], columns * w, apex, rows * d] for w in widths for d in depths), key=likeness)
    for step in (3, 3, 1.5, 1.5, 0.7, 0.7):
        for place in (0, 1, 2, 3) * 2:
            best = max(
                ([*best[:place], best[place] + way, *best[place + 1 :]] for way in (0, -step, step)), key=likeness
            )
    return best


def without_lines(picture: Picture) -> tuple[Picture, Picture]:
    """Return a film without tubes and leads, and how much brighter than its surroundings each pixel is."""
    hat = picture - cv2.morphologyEx(picture, cv2.MORPH_OPEN, cv2.getStructuringElement(2, (9, 9)))
    labels, _ = ndi.label(hat > 0.07, np.ones((3, 3)))
    boxes, strong = ndi.find_objects(labels), np.unique(labels[hat > 0.14])
    line = np.isin(labels, [i for i in strong if i and max(b.stop - b.start for b in boxes[i - 1]) * MM > 13])
    near = cv2.dilate(line.astype(np.uint8), cv2.getStructuringElement(2, (5, 5))) > 0
    usual = cv2.medianBlur((np.clip(picture, 0, 1) * 255).astype(np.uint8), 35).astype(np.float32) / 255
    return np.where(near, usual, picture), hat


def measured(path: Path, claims: list[Claim], portable: bool) -> Measures:
    """Return the measurements of a frontal film whose report makes these claims, by their names in ``TABLE``."""
    picture = film(path)
    frame, (bare, hat) = registered(picture), without_lines(picture)
    bright = ndi.gaussian_filter(halved(bare), 3 / STEP)
    grain = ndi.gaussian_filter(halved(np.abs(bare - ndi.gaussian_filter(bare, 2 / MM))), 4 / STEP)
    across, down = np.arange(36) / 36 * 1.14 + 0.046, np.arange(60) / 60 * 1.5 - 0.0875
    lungs, rough = ([sampled(one, frame, across * sign, down) for sign in (-1, 1)] for one in (bright, grain))
    dark = np.percentile(np.stack(lungs)[:, 8:40, 8:30], 10)
    spine = sampled(bright, frame, np.linspace(-0.12, 0.06, 7), np.linspace(0.05, 0.95, 20))
    span = max(float(np.median(spine) - dark), 0.15)
    a = [pooled((lung - dark) / span, 10, 4) for lung in lungs]
    b = [pooled(lung / span * 20, 10, 4) for lung in rough]
    heart = sampled(bright, frame, np.linspace(-0.85, 0.95, 60), np.linspace(0.5, 1.1, 24))
    corner = np.array([[MM, 0, -int(frame[0] * 2 - 132 / MM) * MM], [0, MM, -int(frame[2] * 2 - 48 / MM) * MM]])
    lines = cv2.warpAffine(np.clip(hat - 0.05, 0, 0.25).astype(np.float32) * 4, corner, (264, 312))
    near = lines[:306, 72:192].reshape(51, 6, 20, 6).max(3).mean(1) * 3
    found = {
        "heart": pooled((heart - dark) / span, 4, 30),
        "both": np.r_[a[0] + a[1], b[0] + b[1]] / 2,
        "top": pooled(lines[:120], 10, 22) * 10,
        "all": pooled(lines, 13, 11) * 10,
        "tip": pooled(near[6:46, 3:12], 20, 9),
        "airway": pooled(near[12:40, 4:14], 14, 10),
        "gut": pooled(near[21:51, 6:20], 15, 7),
        "leads": pooled(near[:50], 25, 10),
    }
    for i, side in enumerate(SIDES):
        found["fluid " + side], found["air " + side] = np.r_[a[i], a[1 - i]], np.r_[a[i], b[i], a[1 - i], b[1 - i]]
    held, start, out = {said["finding"] for said in claims if said["present"]}, 448, dict[str, float]()
    known = [*(float(name in held) for name in DEVICES), portable, frame[1] * STEP / 150]
    for name, (group, values) in LEARNED.items():
        row = np.r_[found[group], known, (frame[3] - frame[2]) * STEP / 250]
        weights, start = SIGNS[start : start + len(row)] - 42, start + len(row)
        unit, intercept = (float(value) for value in values.split()[:2])
        if group != "tip" or "pacemaker" not in held:  # leads hide the tip of a line
            out[name] = float(row @ weights) * unit + intercept
    return out


def expected(said: Claim, key: str) -> Measures:
    """Return what the measurements of a kind would be without their bias if a claim is true, by their names."""
    names = ("small", "moderate", "large", "mild", "moderate", "severe")
    level = LEVELS[key][names.index(said["severity"]) % 3] if said["present"] and key in LEVELS else 0.0
    out = {key: level if key == "ede" else float(said["present"])} if key in LEARNED else {}
    truths = {"right": said["side"] in ("right", "bilateral"), "left": said["side"] in ("left", "bilateral")}
    truths |= {"count": said["count"], "side": said["side"] == "left"}
    for name in [name for name in LEARNED if name.startswith(key + " ")]:
        what = name[4:]
        out[name] = float(truths.get(what, said["tip"] == what)) * (level if what in SIDES else 1)
    return out


def likelihood(said: Claim, key: str, now: Measures, before: Measures) -> float:
    """Return the log-likelihood of a claim given the measurements of this film and, if there is one, the one before."""
    if said["present"] and not said["severity"] and key in LEVELS:
        return max(likelihood(said | {"severity": word}, key, now, before) for word in ("mild", "moderate", "severe"))
    total = 0.0
    for name, value in expected(said, key).items():
        offset, slope, noise = (float(number) for number in LEARNED[name][1].split()[2:])
        if name in now:
            total -= min(abs(now[name] - offset - slope * value) / noise, 4) ** 2 / 2
        if name in before and said["change"] in CHANGED and key in STEPS and value:
            step = slope * STEPS[key] * CHANGED[said["change"]]
            total -= min(abs(now[name] - before[name] - step) / noise, 4) ** 2 / 2
    return total


def readings(said: Claim, slots: list[str]) -> list[tuple[Claim, float]]:
    """Return a drafted claim and whatever else may be true with one slot changed, each with its prior probability."""
    options = {slot.split()[0]: (slot.split()[1], " ".join(slot.split()[2:]).split(",")) for slot in slots}
    if not said["present"]:
        share = DENIED_WRONGLY.get(said["finding"], 0.0)
        sides, grades = (options.get(slot, ("", [None]))[1] for slot in ("side", "severity"))
        others = [said | {"present": True, "change": None, "side": a, "severity": b} for a in sides for b in grades]
        return [(said, 1 - share), *((other, share / len(others)) for other in others)]
    found = list[tuple[Claim, float]]()
    for slot, (percent, values) in (options | {"change": ("25", list(CHANGED))}).items():
        fitting = [value for value in values if str(said[slot]) in values and value != str(said[slot])]
        others = [said | {slot: int(value) if slot == "count" else value} for value in fitting]
        others = [said | {"present": False, "change": None}] if slot == "present" else others
        found += [(other, int(percent) / 100 / len(others)) for other in others]
    return [(said, 1 - sum(prior for _, prior in found)), *found]


def corrected(line: str, now: Measures, before: Measures) -> str:
    """Return a sentence, put right where another reading of its one claim is likelier than the drafted one."""
    said, rows = claim(line), dict(row.strip().split(": ", 1) for row in KINDS.replace("\n", "").split("/ "))
    if not said or said["finding"] not in rows:
        return line
    key, slots = rows[said["finding"]].split(": ")
    found = readings(said, slots.split("; "))
    scores = [np.log(max(prior, 0.001)) + likelihood(other, key, now, before) for other, prior in found]
    new = found[int(np.argmax(scores))][0]
    if max(scores) < scores[0] + MARGIN:
        return line
    name = new["finding"].replace("_", " ").replace("central line", "central venous catheter")
    if not new["present"]:
        return f"There is no {name}."
    counts = {"pac": ("single-lead", "dual-lead", "three-lead"), "tub": ("one", "two")}
    number = counts[key][new["count"] - 1] if key in counts else None
    words = [number, "new" if new["change"] == "new" else None, new["severity"], new["side"], name]
    plural = "s" if number == "two" or new["side"] == "bilateral" else ""
    tail = f" with its tip in the {new['tip']}" if new["tip"] else ""
    tail += f", {new['change']}" if new["change"] in CHANGED else ""
    return f"There is {' '.join(word for word in words if word)}{plural}{tail}."


def main() -> None:
    """Read all studies, correct the last one's draft by what its frontal film and the one before show, write it."""
    films = list[Measures]()
    for folder in sorted(DATA.glob("study_*")):
        technique, text = (folder / "report.txt").read_text().split("FINDINGS:")
        lines = re.split(r"(?<=\.)\s+(?=[A-Z0-9])", " ".join(text.split("IMPRESSION:", maxsplit=1)[0].split()))
        claims, portable = [said for said in map(claim, lines) if said], re.search(r"\bAP\b|(?i:portable)", technique)
        films.append(measured(min(folder.glob("view_*")), claims, bool(portable)))
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "findings.txt").write_text("\n".join(corrected(line, films[-1], [{}, *films][-2]) for line in lines) + "\n")


if __name__ == "__main__":
    main()
