"""Tables in Markdown, and values with their range."""

import statistics


def as_table(columns, rows):
    """Returns rows of cells as a Markdown table."""
    rows = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows)


def spread(values, form):
    """Returns the median of values and their range, as text."""
    middle = statistics.median(values)
    return f"{middle:{form}} ({min(values):{form}} to {max(values):{form}})"
