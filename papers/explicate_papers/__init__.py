"""The five papers, figure by figure: their measurements, our simulator's results, and whether the two agree.

Each folder is one paper, each file one experiment of its ``register.json``; `study.py` has their decorators.
"""
