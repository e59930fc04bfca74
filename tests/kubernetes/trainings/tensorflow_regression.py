"""The regression of `regression` with TensorFlow's ParameterServerStrategy, by TF_CONFIG."""

from __future__ import annotations

import json
import os
import time

import numpy as np
import tensorflow as tf

from tests.kubernetes.trainings import shared
from tests.kubernetes.trainings.regression import PARTS, RATE, SIZE, data

Resolver = tf.distribute.cluster_resolver.SimpleClusterResolver


def resolver() -> Resolver:
    told = json.loads(os.environ["TF_CONFIG"])
    cluster, (task, index) = told["cluster"], (told["task"]["type"], told["task"]["index"])
    found = tf.train.ClusterSpec(cluster)
    return Resolver(found, task_type=task, task_id=index, rpc_layer="grpc")


def coordinate(found: Resolver) -> None:
    """Be the chief: hand parts of minibatches to the workers, move the weights on the server."""
    initial, first = shared.begin()
    strategy = tf.distribute.ParameterServerStrategy(found)
    workers = tf.distribute.coordinator.ClusterCoordinator(strategy)
    count = found.cluster_spec().num_tasks("worker")
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
        shared.note(weights.numpy(), step + 1, float(np.mean(losses)))
    print("done", flush=True)


def main() -> None:
    found = resolver()
    if found.task_type == "chief":
        coordinate(found)
        return
    shared.begin()
    task = found.task_type, found.task_id
    server = tf.distribute.Server(found.cluster_spec(), *task, protocol="grpc")
    shared.serve(server.target)


if __name__ == "__main__":
    main()
