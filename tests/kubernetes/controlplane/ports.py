"""Ports that are free, and that nobody gets by chance until a server listens on them."""

from __future__ import annotations

import random
import socket

# Below the range from which the system takes ports for outgoing connections (32768 on Linux), so
# that a port stays free while its server is started, or killed and started again.
_RANGE = range(20_000, 32_000)


def free_ports(count: int) -> list[int]:
    """`count` different ports on which nothing listens on 127.0.0.1."""
    chosen: list[int] = []
    for port in random.SystemRandom().sample(_RANGE, len(_RANGE)):
        if len(chosen) == count:
            break
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue  # somebody has it without listening
        chosen.append(port)
    return chosen
