"""A bound for long horizons: the master cut into periods, each solved by itself at prices."""
