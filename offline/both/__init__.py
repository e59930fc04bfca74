"""The decomposition and the compact model on one instance: at once, or one after the other."""
