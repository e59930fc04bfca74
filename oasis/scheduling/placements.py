"""All placement rules by name, and which one a policy has that chooses none."""

from __future__ import annotations

from collections.abc import Callable

from oasis.scheduling.node_placement import MinimumOnOneNode, MostIdle, OneNode
from oasis.scheduling.placement import BestFit, FirstFit, Placement, RoundRobin, Spread
from oasis.scheduling.site import Site

PLACEMENTS: dict[str, Callable[[], Placement]] = {
    "best-fit": BestFit,
    "round-robin": RoundRobin,
    "first-fit": FirstFit,
    "spread": Spread,
    "one-node": OneNode,
    "most-idle": MostIdle,
    "minimum-on-one-node": MinimumOnOneNode,
}


def check_placement(name: str | None) -> str | None:
    """`name` if there is such a placement rule, or if it is None.

    Raises
    ------
    ValueError
        If there is none of this name.

    Examples
    --------
    >>> check_placement("spread")
    'spread'
    >>> check_placement("worst-fit")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: placement: expected one of best-fit, ..., minimum-on-one-node, got 'worst-fit'
    """
    if name is not None and name not in PLACEMENTS:
        raise ValueError(f"placement: expected one of {', '.join(PLACEMENTS)}, got {name!r}")
    return name


def placement_named(name: str | None, site: Site) -> Placement:
    """A new placement rule.

    Parameters
    ----------
    name : str or None
        A key of `PLACEMENTS`. None: round-robin on slotted instances, as the rivals of the OASiS
        paper place, and best fit elsewhere.
    site : Site
        The machines.

    Examples
    --------
    >>> from oasis.scheduling import Machine
    >>> placement_named(None, Site(("gpu",), (Machine("n0", (4.0,)),))).name
    'best-fit'
    """
    if name is None:
        return RoundRobin() if site.slotted else BestFit()
    check_placement(name)
    return PLACEMENTS[name]()
