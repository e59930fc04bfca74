"""All policies on the same elastic jobs: the table of docs/controllers."""
