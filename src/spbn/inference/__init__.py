"""Questions to a network: what is likely, given what is known.

`query` answers one question; `batch` fills in, predicts or integrates out what is missing in rows. `effects`
and `counterfactual` are about causes, and `equivalent` asks all graphs that open directions allow.
"""

from spbn.inference.query import Posterior, query

__all__ = ["Posterior", "query"]
