"""The regression of `regression` with JAX: minibatches lie across all processes of the job."""

from __future__ import annotations

import os

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.kubernetes.trainings import shared
from tests.kubernetes.trainings.regression import PARTS, RATE, ROWS


def padded(rows: shared.Array, count: int) -> shared.Array:
    """`count` rows, the last of which may be zeros."""
    return np.concatenate([rows, np.zeros((count - len(rows), *rows.shape[1:]))])


def main() -> None:
    world, rank = int(os.environ["JAX_NUM_PROCESSES"]), int(os.environ["JAX_PROCESS_ID"])
    jax.config.update("jax_enable_x64", True)
    initial, first = shared.begin()
    jax.distributed.initialize(os.environ["JAX_COORDINATOR_ADDRESS"], world, rank)
    print(f"{world} processes from step {first}", flush=True)
    rows = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), PartitionSpec("rows"))

    def loss(weights: jax.Array, features: jax.Array, targets: jax.Array) -> jax.Array:
        return jnp.sum((features @ weights - targets) ** 2) / (PARTS * ROWS)

    most = -(-PARTS // world) * ROWS
    slope, weights = jax.jit(jax.value_and_grad(loss)), initial
    for step in range(first, shared.STEPS):
        # Every process has as many rows as the others: those of zeros add nothing.
        own = [padded(each, most) for each in shared.minibatch(step, rank, world)]
        whole = [jax.make_array_from_process_local_data(rows, each) for each in own]
        value, gradient = slope(weights, *whole)
        weights = weights - RATE * np.asarray(gradient.addressable_data(0))
        shared.ready()
        if rank == 0:
            shared.note(weights, step + 1, float(value.addressable_data(0)))
    print("done", flush=True)


if __name__ == "__main__":
    main()
