"""The policies that OASiS is compared with, one a file."""

from baselines.dorm import Dorm
from baselines.dragon import Dragon, LocalityAware
from baselines.drf import DRF
from baselines.easy import EASY
from baselines.fifo import FIFO
from baselines.finish_time_fairness import FinishTimeFairness
from baselines.gittins import Gittins
from baselines.kod2 import Kod2
from baselines.kubernetes_default import KubernetesDefault
from baselines.las import LAS
from baselines.priority_queue import PriorityQueue
from baselines.registry import ALL, CONTROLLERS, POLICIES, QUEUES, make
from baselines.rrh import RRH
from baselines.sjf import SJF
from baselines.specon import SpeCon
from baselines.srsf import SRSF
from baselines.srtf import SRTF

__all__ = [
    "ALL",
    "CONTROLLERS",
    "DRF",
    "EASY",
    "FIFO",
    "LAS",
    "POLICIES",
    "QUEUES",
    "RRH",
    "SJF",
    "SRSF",
    "SRTF",
    "Dorm",
    "Dragon",
    "FinishTimeFairness",
    "Gittins",
    "Kod2",
    "KubernetesDefault",
    "LocalityAware",
    "PriorityQueue",
    "SpeCon",
    "make",
]
