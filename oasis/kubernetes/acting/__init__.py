"""From a plan to writes: what has to be done so that the pods are those of the plan."""
