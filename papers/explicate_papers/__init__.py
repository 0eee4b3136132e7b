"""The five papers, figure by figure: what they measured, what our simulator gives, and whether the two agree.

One folder is one paper, one file an experiment of its ``register.json``; `study.py` is what they are written with.
"""
