"""What can be measured and prescribed: items, panels, assessments and drugs, read from ``catalogue/``."""

import csv
import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "catalogue"
DRIVERS = (
    "inf", "ren", "hep", "ane", "res", "cir", "neu", "gly", "nat",
    "kal", "leu", "war", "ble", "cold", "fev", "dia", "shk",
)  # fmt: skip
"""Latent states: inflammation, kidney, liver, anaemia, lung, circulation, brain, ketoacidosis, hyponatraemia,
hyperkalaemia, leukocytosis, over-anticoagulation, bleeding, cooling, fever, time since dialysis, shock liver."""


@dataclass(frozen=True)
class LabItem:
    """A laboratory analyte; pairs are (female, male), CVs are fractions, ``loads`` act on the logarithm."""

    itemid: int
    label: str
    fluid: str
    category: str
    panel: str
    unit: str
    decimals: int
    low: tuple[float | None, float | None]
    high: tuple[float | None, float | None]
    middle: tuple[float, float]
    between: float
    within: float
    """Within-subject CV; 0 for a member that is calculated from others."""
    loads: dict[str, float]

    @property
    def sexed(self) -> bool:
        return self.low[0] != self.low[1] or self.high[0] != self.high[1]

    @property
    def reference_change(self) -> float:
        """Reference change value as a fraction: 1.96 x sqrt(2) x sqrt(CVa^2 + CVi^2) with CVa = CVi / 2."""
        return 3.1 * self.within


@dataclass(frozen=True)
class ChartItem:
    """A numeric charted item; ``loads`` are in its own unit."""

    itemid: int
    label: str
    abbreviation: str
    category: str
    unit: str
    decimals: int
    group: str
    mean: float
    between: float
    within: float
    low: float
    high: float
    loads: dict[str, float]


@dataclass(frozen=True)
class TextItem:
    """An assessment by text or score, from well to ill."""

    itemid: int
    label: str
    category: str
    values: tuple[str, ...]
    scores: tuple[int, ...]
    driver: str
    slope: float
    every: int
    """Hours between two chartings; 0 = once per stay."""
    needs: str
    share: float


@dataclass(frozen=True)
class Drug:
    """A product of the formulary with the doses it is ordered in."""

    name: str
    group: str
    strength: float
    unit: str
    form: str
    form_unit: str
    route: str
    times: int
    doses: tuple[float, ...]
    weight: float
    code: str

    @property
    def printed_strength(self) -> str:
        return f"{self.strength:g} {self.unit} {self.form}"


@dataclass(frozen=True)
class Panel:
    """How often a panel is drawn per day, on the ward and in intensive care."""

    name: str
    ward: float
    icu: float
    when: str
    items: tuple[LabItem, ...] = field(default=())


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _loads(text: str) -> dict[str, float]:
    loads = {}
    for word in text.split():
        match = re.fullmatch(r"([a-z]+)([+-][\d.]+)", word)
        if match is None or match[1] not in DRIVERS:
            raise ValueError(f"catalogue: {word!r} is no load on a latent state")
        loads[match[1]] = float(match[2])
    return loads


def _optional(text: str) -> float | None:
    return float(text) if text else None


@cache
def lab_items() -> tuple[LabItem, ...]:
    """Return the analytes, by panel as the file lists them."""
    return tuple(
        LabItem(
            itemid=int(row["itemid"]),
            label=row["label"],
            fluid=row["fluid"],
            category=row["category"],
            panel=row["panel"],
            unit=row["unit"],
            decimals=int(row["dec"]),
            low=(_optional(row["low_f"]), _optional(row["low_m"])),
            high=(_optional(row["high_f"]), _optional(row["high_m"])),
            middle=(float(row["mid_f"]), float(row["mid_m"])),
            between=float(row["between"]) / 100,
            within=float(row["within"]) / 100,
            loads=_loads(row["loads"]),
        )
        for row in _rows("labs.csv")
    )


@cache
def panels() -> tuple[Panel, ...]:
    """Return the panels with their members."""
    return tuple(
        Panel(
            row["panel"],
            float(row["ward"]),
            float(row["icu"]),
            row["when"],
            tuple(item for item in lab_items() if item.panel == row["panel"]),
        )
        for row in _rows("panels.csv")
    )


@cache
def chart_items() -> tuple[ChartItem, ...]:
    """Return the numeric charted items."""
    return tuple(
        ChartItem(
            itemid=int(row["itemid"]),
            label=row["label"],
            abbreviation=row["abbreviation"],
            category=row["category"],
            unit=row["unit"],
            decimals=int(row["dec"]),
            group=row["set"],
            mean=float(row["mean"]),
            between=float(row["between"]),
            within=float(row["within"]),
            low=float(row["low"]),
            high=float(row["high"]),
            loads=_loads(row["loads"]),
        )
        for row in _rows("charted.csv")
    )


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))


@cache
def words() -> dict[str, Any]:
    """Return the word lists of the administrative tables."""
    return _toml("words.toml")


@cache
def injection() -> dict[str, Any]:
    """Return the recipe of the injected errors."""
    return _toml("injection.toml")


@cache
def text_items() -> tuple[TextItem, ...]:
    """Return the products of sites and assessments; an id that is taken moves on to the next free one."""
    taken = {item.itemid for item in chart_items()}
    items = []
    for group in _toml("texts.toml")["group"]:
        number = int(group["first"])
        for site in group["sites"]:
            for what in group["what"]:
                while number in taken:
                    number += 1
                taken.add(number)
                items.append(
                    TextItem(
                        itemid=number,
                        label=f"{site} {what['label']}".strip(),
                        category=group["category"],
                        values=tuple(what["values"]),
                        scores=tuple(what.get("scores", ())),
                        driver=what["driver"],
                        slope=float(what["slope"]),
                        every=int(what["every"]),
                        needs=what.get("needs", ""),
                        share=float(what.get("share", group.get("share", 1.0))),
                    )
                )
    return tuple(items)


def text_item(label: str) -> TextItem:
    """Return the assessment of that label."""
    return next(item for item in text_items() if item.label == label)


@cache
def drugs() -> tuple[Drug, ...]:
    """Return the formulary."""
    return tuple(
        Drug(
            name=row["drug"],
            group=row["group"],
            strength=float(row["strength"]),
            unit=row["unit"],
            form=row["form"],
            form_unit=row["form_unit"],
            route=row["route"],
            times=int(row["times"]),
            doses=tuple(float(dose) for dose in row["doses"].split()),
            weight=float(row["weight"]),
            code=row["code"],
        )
        for row in _rows("drugs.csv")
    )
