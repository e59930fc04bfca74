"""The policies of `oasis.scheduling` on a Kubernetes cluster (extra ``kubernetes``).

Scheduling stays in the policy, and all that is Kubernetes stays here. Functions that decide are
kept apart from those that talk to an API server: ``control`` runs the turns, ``planning`` asks the
policy, ``acting`` compares pods with the plan, ``cluster`` and ``objects`` say what is there, and
``api`` talks to the server.
"""
