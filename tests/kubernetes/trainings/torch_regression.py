"""The regression of `regression` with PyTorch: torchrun starts it again when pods come or go."""

from __future__ import annotations

import numpy as np
import torch
import torch.distributed as dist

from tests.kubernetes.trainings import shared
from tests.kubernetes.trainings.regression import PARTS, RATE, ROWS


def main() -> None:
    torch.set_num_threads(1)
    initial, first = shared.begin()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    # The first one may have saved since the others have read: all take what it has.
    state = torch.tensor(np.append(initial, first))
    dist.broadcast(state, 0)
    weights, first = state[:-1], int(state[-1])
    print(f"{world} processes from step {first}", flush=True)
    for step in range(first, shared.STEPS):
        features, targets = map(torch.from_numpy, shared.minibatch(step, rank, world))
        error = features @ weights - targets
        sums = torch.cat([2 * features.T @ error, (error**2).sum()[None]])
        dist.all_reduce(sums)
        sums /= PARTS * ROWS
        weights -= RATE * sums[:-1]
        shared.ready()
        if rank == 0:
            shared.note(weights.numpy(), step + 1, float(sums[-1]))
    print("done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
