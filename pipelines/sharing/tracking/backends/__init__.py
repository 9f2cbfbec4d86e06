"""Tracking backends, one file each: a class with the methods of `Tracker`, registered in `TRACKERS` by its name.

A new file in this folder is a new value of `tracking.backend`.
"""
