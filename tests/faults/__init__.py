"""The fault suite: the real command, one fault at a time, and what must hold whatever happens.

`make faults` draws 200 faults by a seed; the same seed draws the same faults. A fault that ends the process gets a
process of its own; the others run in a warm one, where Java has compiled its code, through the door of the console
command. Files in reading order: `commands` (both ways to run it), `plan` and `shim.c` (failing calls, a kill at a call,
and a clock that jumps, in the real command), `world` (the data and the numbers of an undisturbed run), `servers`,
`loops` (readers), `faults` (what can go wrong), `driver` (draw, inject, check).
"""
