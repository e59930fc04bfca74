"""Recourse: planning all live jobs again whenever something happens, not once and for all."""

from oasis.online.recourse.admission import AdmissionRule, AtPrices
from oasis.online.recourse.params import Commitment, RecourseParams
from oasis.online.recourse.planner import Planner

__all__ = ["AdmissionRule", "AtPrices", "Commitment", "Planner", "RecourseParams"]
