"""Print the README's task table from the catalogue, so that no number stands twice."""

from categories.catalog import load_catalog


def brief(sentence: str) -> str:
    """Return the rule's first sentence; the instruction has the rest."""
    return sentence.partition(". ")[0].partition(" - ")[0].rstrip(".")


def rows() -> list[str]:
    """Return one table row per category."""
    return [
        f"| `{category.id}` | {len(category.cases)} | `{category.submission.path}` | "
        f"{category.headline.metric} ({category.headline.direction} is better) | "
        f"{brief(category.pass_rule.sentence())} |"
        for category in load_catalog()
    ]


if __name__ == "__main__":
    print("\n".join(rows()))
