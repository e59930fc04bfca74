"""Schedules without a proof: insertion, ruin and recreate, fix-and-optimise."""
