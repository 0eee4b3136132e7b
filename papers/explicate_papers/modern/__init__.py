"""The modern verdict: the papers' topologies with what an engineer would use today in the place of their baselines.

`topologies` has the topologies, each a case of an experiment; `hosts` gives a case other hosts and queues; `verdict`
has the rule; `study` is what ``explicate study papers`` calls.
"""
