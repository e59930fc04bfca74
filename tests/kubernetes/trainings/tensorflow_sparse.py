"""The regression of `regression` with TensorFlow's workers that know the parameter server alone.

Each trains on its own and moves the weights that are there, so that workers may come and go. Which
worker does which step is left to chance: the weights end near the truth, not at exact numbers.
"""

from __future__ import annotations

import json
import os
import time

import tensorflow as tf

from tests.kubernetes.trainings import shared
from tests.kubernetes.trainings.regression import PARTS, RATE, SIZE, data

v1 = tf.compat.v1


def work(target: str, index: int) -> None:
    """Be a worker; the first one makes the weights and keeps a checkpoint."""
    initial, first = shared.begin()
    own, server = f"/job:worker/task:{index}", "/job:ps/task:0"
    with v1.device(server):
        weights = v1.get_variable("weights", initializer=initial, use_resource=True)
        done = v1.get_variable("done", initializer=first, use_resource=True)
    with v1.device(own):
        features = v1.placeholder(tf.float64, (None, SIZE))
        targets = v1.placeholder(tf.float64, (None,))
        loss = tf.reduce_mean((tf.linalg.matvec(features, weights) - targets) ** 2)
        descent = v1.train.GradientDescentOptimizer(RATE).minimize(loss)
    with v1.control_dependencies([descent]):
        count = v1.assign_add(done, 1)
    missing, make = v1.report_uninitialized_variables(), v1.global_variables_initializer()
    # Without filters it would wait for all workers of the cluster.
    config = v1.ConfigProto(device_filters=[own, server])
    with v1.Session(target, config=config) as session:
        while session.run(missing).size:
            if index == 0:
                session.run(make)
            time.sleep(0.2)
        step = session.run(done)
        print(f"worker {index} from step {step}", flush=True)
        while step < shared.STEPS:
            time.sleep(shared.PAUSE * PARTS)
            rows, wanted = data(int(step), index % PARTS)
            step, error = session.run([count, loss], {features: rows, targets: wanted})
            shared.ready()
            if index == 0:
                shared.note(session.run(weights), min(int(step), shared.STEPS), float(error))
    print("done", flush=True)


def main() -> None:
    told = json.loads(os.environ["TF_CONFIG"])
    task, index = told["task"]["type"], told["task"]["index"]
    cluster = {
        job: {int(k): host for k, host in hosts.items()} if isinstance(hosts, dict) else hosts
        for job, hosts in told["cluster"].items()
    }
    server = v1.train.Server(v1.train.ClusterSpec(cluster), task, index)
    if task == "worker":
        work(server.target, index)
        return
    shared.begin()
    shared.serve(server.target)


if __name__ == "__main__":
    v1.disable_eager_execution()
    main()
