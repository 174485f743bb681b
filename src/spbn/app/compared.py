"""The table that `compare_models` returns: a data frame that notebooks show with bars."""

from __future__ import annotations

from typing import final

import pandas as pd


@final
class Comparison(pd.DataFrame):
    """A data frame in every respect; whatever is taken out of it is an ordinary one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """Show the models in a notebook."""
        from spbn.report.notebooks import comparison_html

        return comparison_html(self)
