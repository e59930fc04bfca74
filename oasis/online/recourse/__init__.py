"""Recourse: planning all live jobs again whenever something happens, not once and for all."""

from oasis.online.recourse.admission import AdmissionRule, AtPrices
from oasis.online.recourse.futures import SampledFutures
from oasis.online.recourse.learned import AtLearnedPrices, LearnedPrices
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.planner import Replanner

__all__ = [
    "AdmissionRule",
    "AtLearnedPrices",
    "AtPrices",
    "Commitment",
    "LearnedPrices",
    "RecourseParams",
    "Replanner",
    "SampledFutures",
]
