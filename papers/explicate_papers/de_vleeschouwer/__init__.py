"""Paper D: loss-resilient XCP and XTCP."""
