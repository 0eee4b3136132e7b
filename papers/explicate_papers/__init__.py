"""The five papers, figure by figure: what was measured, what our simulator says, and whether it agrees.

One file is one experiment of ``register.json``; `study.py` is what they are written with.
"""
