"""What the objects of a cluster say, and how it is written: jobs, quantities, conditions."""
