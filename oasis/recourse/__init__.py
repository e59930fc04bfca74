"""Recourse: planning all live jobs again whenever something happens, not once and for all."""

from oasis.recourse.admission import AdmissionRule, AtPrices
from oasis.recourse.params import Commitment, RecourseParams
from oasis.recourse.planner import Planner
from oasis.recourse.policy import Recourse

__all__ = [
    "AdmissionRule",
    "AtPrices",
    "Commitment",
    "Planner",
    "Recourse",
    "RecourseParams",
]
