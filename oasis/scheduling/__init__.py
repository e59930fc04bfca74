"""Scheduling policies: their view, their plan, and the free capacity to plan on.

Nothing here has a clock or knows prices. The simulator drives policies with events; an adapter to a
real cluster can drive the same policies.
"""

import inspect

from oasis.scheduling.book import NEVER_FITS as NEVER_FITS
from oasis.scheduling.book import EmptyCluster as EmptyCluster
from oasis.scheduling.book import JobBook as JobBook
from oasis.scheduling.job import NOTHING as NOTHING
from oasis.scheduling.job import Allocation as Allocation
from oasis.scheduling.job import PolicyJob as PolicyJob
from oasis.scheduling.job import TrainingCurve as TrainingCurve
from oasis.scheduling.placement import PLACEMENTS as PLACEMENTS
from oasis.scheduling.placement import BestFit as BestFit
from oasis.scheduling.placement import FirstFit as FirstFit
from oasis.scheduling.placement import MinimumOnOneNode as MinimumOnOneNode
from oasis.scheduling.placement import MostIdle as MostIdle
from oasis.scheduling.placement import OneNode as OneNode
from oasis.scheduling.placement import Placement as Placement
from oasis.scheduling.placement import Room as Room
from oasis.scheduling.placement import RoundRobin as RoundRobin
from oasis.scheduling.placement import Spread as Spread
from oasis.scheduling.placement import check_placement as check_placement
from oasis.scheduling.placement import placement_named as placement_named
from oasis.scheduling.policy import BasePolicy as BasePolicy
from oasis.scheduling.policy import Plan as Plan
from oasis.scheduling.policy import Policy as Policy
from oasis.scheduling.policy import View as View
from oasis.scheduling.site import Machine as Machine
from oasis.scheduling.site import Site as Site
from oasis.scheduling.site import policy_job as policy_job

__all__ = [name for name, it in globals().items() if name[0] != "_" and not inspect.ismodule(it)]
