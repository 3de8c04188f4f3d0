"""How many rows are nearest to each of some public points, and which labels they have."""

from discreet.readers.table.answers import Table
from discreet.readers.table.layout import TableLayout
from discreet.readers.table.mechanism import TABLE, TableOptions, TablePlan

__all__ = ["TABLE", "Table", "TableLayout", "TableOptions", "TablePlan"]
