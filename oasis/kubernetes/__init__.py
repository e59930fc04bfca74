"""The policies of `oasis.scheduling` on a Kubernetes cluster (extra ``kubernetes``).

Scheduling stays in the policy, and all that is Kubernetes stays here. Functions that decide are
kept apart from those that talk to an API server.
"""
