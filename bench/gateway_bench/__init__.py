"""Applications through two gateways, beside what else there is, over the same paths: see `__main__.py`."""
