"""Sweeps: the same scenario at many points and seeds, on any executor, kept so that nothing is run twice."""
