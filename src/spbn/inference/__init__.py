"""Questions to a network: what is likely, given what is known.

`query` answers one question; `holes` fills in, predicts or integrates out what is missing in rows.
"""

from spbn.inference.posterior import Posterior
from spbn.inference.query import query

__all__ = ["Posterior", "query"]
