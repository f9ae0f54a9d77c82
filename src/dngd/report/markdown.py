"""Tables as GitHub and most other readers of Markdown show them."""

from collections.abc import Sequence


def markdown_table(titles: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """The first `left` columns are aligned to the left, the others to the right."""
    rule = "|" + "---|" * left + "---:|" * (len(titles) - left)
    shown = [[text.replace("|", "\\|").replace("\n", " ") for text in line] for line in lines]
    return (
        "\n".join(["| " + " | ".join(titles) + " |", rule, *("| " + " | ".join(line) + " |" for line in shown)]) + "\n"
    )
