"""The fault suite: the real command, one fault at a time, and what must hold whatever happens.

`make faults` draws 200 faults by a seed; the same seed draws the same faults. Files in reading order: `world` (the
data, the command and the numbers of an undisturbed run), `faults` (what can go wrong), `reader` (readers in a loop),
`driver` (draw, inject, check), `shim.c` (failing writes and reads, and a clock that jumps, in the real command).
"""
