"""Policies that start no job, for transcripts of what is said of their options."""

import oasis
from oasis.scheduling import BasePolicy, Plan


class Idle(BasePolicy):
    def __init__(self, most=3, rate=0.5):
        if most < 1:
            raise oasis.InputError("most", "expected > 0", most)
        if rate > 9:
            raise ValueError("rate: too large")

    def decide(self, view):
        return Plan()


class Unlimited(Idle):
    def __init__(self, most=float("inf")):
        self.most = most
