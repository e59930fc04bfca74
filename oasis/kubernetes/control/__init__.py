"""The controller: its turns, what it remembers, what it tells."""
