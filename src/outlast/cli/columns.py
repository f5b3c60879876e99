"""Rows as aligned columns, never wrapped: they are read on terminals and by `grep` alike."""

from collections.abc import Sequence

GAP = "  "


def print_columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns are as wide as what stands in them."""
    table = [head, *rows]
    widths = [max(len(row[n]) for row in table) for n in range(len(head))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(GAP.join(cells).rstrip())
