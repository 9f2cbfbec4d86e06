"""Kinds of gate conditions, one file each: a new file here is a new key of `gate`.

In: the row of `estimates` that a condition is about. Out: what is bounded and the edge it must exceed. Entry:
`registry.CONDITIONS`. Read registry.py, then drop.py.
"""
