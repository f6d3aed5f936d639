"""`Cell`: a place in a table, and what is trained for it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from omegagnn.paper.published import Cell as Printed
from omegagnn.paper.published import published_table
from omegagnn.paper.trainings import Training


@dataclass(frozen=True, eq=False)
class Cell:
    """A place in a table.

    Args:
        row: the network, as the table calls it.
        column: the data set, with its depth where depths are compared.
        table: the table of the paper that prints its number.
        published: the training with the published settings, where there are any.
        chosen: the training under the common budget.
        depth: the number of layers, where depths are compared.
        variant: what sets it apart from another cell of the same row and column, such as how splits are drawn.
    """

    row: str
    column: str
    table: str
    published: Training | None = None
    chosen: Training | None = None
    depth: int | None = None
    variant: str = ""

    @property
    def printed(self) -> Printed | None:
        """What the paper prints there."""
        return published_table(self.table).cell(self.row, self.column)

    def quick(self) -> Cell:
        """Return it with trainings that are quick."""
        return replace(
            self,
            published=None if self.published is None else self.published.quick(),
            chosen=None if self.chosen is None else self.chosen.quick(),
        )


__all__ = ["Cell"]
