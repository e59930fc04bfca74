"""Servers filled with patterns, as a part of a model: one pattern a server, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pulp

from oasis.model.rounding import FloatArray, IntArray
from offline.patterns.patterns import PatternPool


@dataclass(frozen=True, slots=True)
class Filling:
    """The servers of one group in a model.

    Parameters
    ----------
    servers : PatternPool
        The servers in classes of identical ones.
    patterns : sequence of (P, I) int arrays
        Patterns to choose from, by class.
    chosen : sequence of list of integer variable
        How many servers of a class have each of them.
    """

    servers: PatternPool
    patterns: Sequence[IntArray]
    chosen: Sequence[list[pulp.LpVariable]]

    @classmethod
    def added(
        cls,
        problem: pulp.LpProblem,
        name: str,
        servers: PatternPool,
        patterns: Sequence[IntArray],
        placed: Mapping[int, pulp.LpVariable],
    ) -> Filling:
        """Add the choice of one pattern a server; its servers hold what is `placed` of each item.

        Parameters
        ----------
        problem : pulp.LpProblem
            The model.
        name : str
            Begins the names of the new variables.
        servers : PatternPool
            The servers in classes of identical ones.
        patterns : sequence of (P, I) int arrays
            Patterns to choose from, by class.
        placed : mapping of int to variable
            Units of each item in the model.
        """
        covers: dict[int, dict[pulp.LpVariable, int]] = {i: {} for i in placed}
        chosen: list[list[pulp.LpVariable]] = []
        for k, rows in enumerate(patterns):
            most = int(servers.number[k])
            here = [
                problem.add_variable(f"{name}_{k}_{j}", 0, most, pulp.LpInteger)
                for j in range(len(rows))
            ]
            chosen.append(here)
            problem.addConstraint(pulp.lpSum(here) <= most)
            for i, j in np.argwhere(rows.T).tolist():
                if i in covers:
                    covers[i][here[j]] = int(rows[j, i])
        for i, variable in placed.items():
            problem.addConstraint(variable <= pulp.LpAffineExpression(covers[i]))
        return cls(servers, patterns, chosen)

    def units(
        self, values: Mapping[str, float], counts: IntArray, capacity: FloatArray
    ) -> IntArray:
        """Units (I, S) on the servers of these capacities (S, R), `counts` (I,) at most."""
        units = np.zeros((len(counts), len(capacity)), dtype=np.int64)
        left = counts.copy()
        for k, rows in enumerate(self.patterns):
            same = (capacity == self.servers.capacity[k]).all(axis=1)
            hosts = iter(np.flatnonzero(same).tolist())
            for row, variable in zip(rows, self.chosen[k], strict=True):
                for _ in range(round(values.get(variable.name, 0.0))):
                    units[:, next(hosts)] = taken = np.minimum(row, left)
                    left -= taken
        return units

    def values_of(self, units: IntArray, capacity: FloatArray) -> dict[str, float]:
        """Values of the variables for units (I, S): each server has a pattern that holds its own.

        A server with units that no pattern holds gets none.
        """
        values: dict[str, float] = {}
        for k, rows in enumerate(self.patterns):
            same = (capacity == self.servers.capacity[k]).all(axis=1)
            for server in np.flatnonzero(same).tolist():
                above = np.flatnonzero((rows >= units[:, server]).all(axis=1))
                if above.size:
                    name = self.chosen[k][int(above[0])].name
                    values[name] = values.get(name, 0.0) + 1.0
        return values
