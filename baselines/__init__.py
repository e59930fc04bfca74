"""The policies that OASiS is compared with, one a file."""

from baselines.dorm import Dorm
from baselines.dragon import Dragon, LocalityAware
from baselines.drf import DRF
from baselines.fifo import FIFO
from baselines.kod2 import Kod2
from baselines.kubernetes_default import KubernetesDefault
from baselines.las import LAS
from baselines.priority_queue import PriorityQueue
from baselines.registry import ALL, CONTROLLERS, POLICIES, make
from baselines.rrh import RRH
from baselines.specon import SpeCon
from baselines.srtf import SRTF

__all__ = [
    "ALL",
    "CONTROLLERS",
    "DRF",
    "FIFO",
    "LAS",
    "POLICIES",
    "RRH",
    "SRTF",
    "Dorm",
    "Dragon",
    "Kod2",
    "KubernetesDefault",
    "LocalityAware",
    "PriorityQueue",
    "SpeCon",
    "make",
]
