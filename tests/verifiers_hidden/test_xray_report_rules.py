"""What the report judge applies is what the instruction says, and the second opinion counts the same kinds."""

from categories.catalog import find_task
from categories.instruction import instruction_template
from runners import second_opinion
from verifiers_hidden.xray_report_correction.compare import SIZE_MM, SIZE_SHARE
from verifiers_hidden.xray_report_correction.sentences import MAX_CHARACTERS
from verifiers_hidden.xray_report_correction.weigh import KINDS

TASK = find_task("xray_report_correction/case_01")


def test_the_instruction_states_the_judges_numbers() -> None:
    text = instruction_template(TASK)
    assert f"up to {MAX_CHARACTERS:,} characters" in text
    assert f"wrong by more than {SIZE_MM:g} mm and {SIZE_SHARE:.0%}".replace("%", " %") in text
    assert TASK.category.submission.max_bytes >= 2 * MAX_CHARACTERS, "the characters decide, not their encoding"


def test_a_second_opinion_counts_the_verifiers_kinds() -> None:
    assert second_opinion.KINDS == KINDS
