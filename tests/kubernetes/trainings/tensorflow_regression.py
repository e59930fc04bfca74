"""The regression of `regression` with TensorFlow's ParameterServerStrategy, by TF_CONFIG."""

from __future__ import annotations

import signal
import time

import numpy as np
import tensorflow as tf

from tests.kubernetes.trainings import shared
from tests.kubernetes.trainings.regression import PARTS, RATE, SIZE, data


def coordinate(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver) -> None:
    """Be the chief: hand parts of minibatches to the workers, move the weights on the servers."""
    initial, first = shared.begin()
    keeper = shared.Keeper()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    workers = tf.distribute.coordinator.ClusterCoordinator(strategy)
    count = resolver.cluster_spec().num_tasks("worker")
    print(f"{count} workers from step {first}", flush=True)
    with strategy.scope():
        weights = tf.Variable(initial)

    @tf.function(
        input_signature=[
            tf.TensorSpec((None, SIZE), tf.float64),
            tf.TensorSpec((None,), tf.float64),
        ]
    )
    def slope(features: tf.Tensor, targets: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        error = tf.linalg.matvec(features, weights) - targets
        gradient = 2 * tf.linalg.matvec(features, error, transpose_a=True)
        return gradient / tf.cast(tf.size(targets), tf.float64), tf.reduce_mean(error**2)

    for step in range(first, shared.STEPS):
        time.sleep(shared.PAUSE * PARTS / count)
        asked = [workers.schedule(slope, args=data(step, part)) for part in range(PARTS)]
        workers.join()
        gradients, losses = zip(*(each.fetch() for each in asked), strict=True)
        weights.assign_sub(RATE * np.mean(gradients, axis=0))
        shared.ready()
        keeper.note(weights.numpy(), step + 1, float(np.mean(losses)))
    print("done", flush=True)


def main() -> None:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        coordinate(resolver)
        return
    shared.begin()
    spec, task = resolver.cluster_spec(), (resolver.task_type, resolver.task_id)
    server = tf.distribute.Server(spec, *task, protocol="grpc")
    shared.ready()
    print("serving", server.target, flush=True)
    while True:  # `server.join` would not let Python hear SIGTERM
        signal.pause()


if __name__ == "__main__":
    main()
