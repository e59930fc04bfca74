"""The best schedule of one job as a shortest path, found by networkx.

A node (slot, work done) means: so much work was done before that slot. An arc runs n workers in
the slot and costs what the n cheapest workers and their parameter servers cost. From every node
with all the work done an arc leads to the sink; it costs what the job loses by completing there
instead of being worth its most. So a path costs (most utility - payoff), and doing nothing costs
the most utility.
"""

from __future__ import annotations

import heapq
from typing import Any

import networkx as nx

from tests.oracle.reference_search import Question, ps_for

SINK = "sink"


def shortest_path_payoff(market: dict[str, Any]) -> float:
    """Best payoff of the job, 0 if nothing is better than not to run it."""
    question = Question(**market)
    most = float(question.job.utility(0))
    graph = nx.DiGraph()
    graph.add_edge((0, 0), SINK, weight=most)
    for slot in range(len(question.slots)):
        for n, cost in enumerate(_cheapest_units(question, slot)):
            for done in range(question.work - n + 1):
                graph.add_edge((slot, done), (slot + 1, done + n), weight=cost)
        loss = most - question.utility(slot)
        graph.add_edge((slot + 1, question.work), SINK, weight=loss)
    return most - nx.dijkstra_path_length(graph, (0, 0), SINK)


def _cheapest_units(question: Question, slot: int) -> list[float]:
    """Cost of 0, 1, .. workers in a slot, as many as fit with their parameter servers."""
    workers = _units(question.worker_rooms[slot], question.worker_costs[slot])
    servers = _units(question.ps_rooms[slot], question.ps_costs[slot])
    costs = []
    for n in range(min(question.job.chunks, len(workers)) + 1):
        needed = ps_for(question.job, n)
        if needed > len(servers):
            break
        costs.append(sum(heapq.nsmallest(n, workers)) + sum(heapq.nsmallest(needed, servers)))
    return costs


def _units(fits: list[int], costs: list[float]) -> list[float]:
    return [cost for room, cost in zip(fits, costs, strict=True) for _ in range(room)]
