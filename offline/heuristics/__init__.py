"""Schedules without a proof: insertion by density, windows, and searches in turn."""
