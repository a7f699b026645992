"""The ladder's scripts run and hand in what a verifier reads; what they earn stands in the data cards."""

from pathlib import Path

import measure
import pytest

HERE = Path(__file__).parent
LINES = {"l1": 60, "l2": 300}
CASES = {
    "clinical_trial_matching": ("nephrology", ("L0", "L1", "L2")),
    "ehr_event_modelling": ("lupus", ("L1", "L2")),
    "ehr_format_conversion": ("mimic_iv_to_meds", ("L1", "L2")),
}
READ = {"passed", "below_threshold", "check_failed"}
"""Reasons that a verdict gives only on a submission it could read."""


@pytest.mark.parametrize("path", sorted(HERE.glob("*_l[12].py")), ids=lambda path: path.stem)
def test_a_rung_is_as_short_as_it_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8").count("\n") <= LINES[path.stem[-2:]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("category", "level"), [(name, level) for name, (_, levels) in CASES.items() for level in levels]
)
def test_a_rung_is_measured(category: str, level: str, capsys: pytest.CaptureFixture[str]) -> None:
    case, _ = CASES[category]
    measure.main([category, level, "0", "--scale", "small", "--case", case])
    *draws, total = capsys.readouterr().out.splitlines()
    assert all(any(f"({reason}, " in line for reason in READ) for line in draws), draws
    assert total.startswith(f"{category} {level}: ")
    assert f"of {len(draws)} passed" in total
