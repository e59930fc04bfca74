"""Schedules without a proof: insertion by density, windows, and mixes of two."""
