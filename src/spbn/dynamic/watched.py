"""The table that `Monitor.update` returns: a data frame that notebooks show with its alarms."""

from __future__ import annotations

from typing import final

import pandas as pd


@final
class Watched(pd.DataFrame):
    """A data frame in every respect; whatever is taken out of it is an ordinary one."""

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        """Show the rows in a notebook."""
        from spbn.report.notebooks_over_time import verdicts_html

        return verdicts_html(self)
