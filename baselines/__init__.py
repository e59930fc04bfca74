"""The policies that OASiS is compared with, one per file."""

from baselines.dorm import Dorm
from baselines.dragon import Dragon, LocalityAware
from baselines.elasticflow import ElasticFlow
from baselines.fair_shares import DRF, FinishTimeFairness
from baselines.gavel import Gavel
from baselines.gittins import Gittins
from baselines.kod2 import Kod2
from baselines.kubernetes_default import KubernetesDefault
from baselines.optimus import Optimus
from baselines.preemptive import LAS, SRSF, SRTF
from baselines.priority_queue import PriorityQueue
from baselines.queues import EASY, FIFO, SJF
from baselines.registry import ALL, CONTROLLERS, POLICIES, QUEUES, make
from baselines.rrh import RRH
from baselines.specon import SpeCon

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
    "ElasticFlow",
    "FinishTimeFairness",
    "Gavel",
    "Gittins",
    "Kod2",
    "KubernetesDefault",
    "LocalityAware",
    "Optimus",
    "PriorityQueue",
    "SpeCon",
    "make",
]
