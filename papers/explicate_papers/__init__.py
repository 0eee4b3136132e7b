"""The five papers, figure by figure: what was measured, what our simulator says, and whether it agrees.

One folder is one paper, one file an experiment of its ``register.json``; `study.py` is what they are written with.
"""
