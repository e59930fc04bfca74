"""Studies of this project's own choices, drawn like the figures of the papers."""
