"""Schedulers for services: a rolling horizon, changes at any time, a journal that keeps them."""

from oasis.online.live.answers import Change, Completion, Delay, Progress, Quote, Totals
from oasis.online.live.scheduler import LiveScheduler

__all__ = ["Change", "Completion", "Delay", "LiveScheduler", "Progress", "Quote", "Totals"]
