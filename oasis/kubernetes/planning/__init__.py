"""A policy is asked slot by slot: live jobs, what it sees, work done and left."""
