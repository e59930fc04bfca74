"""One loop for every policy: events in, one question to the policy, one check of its plan."""
