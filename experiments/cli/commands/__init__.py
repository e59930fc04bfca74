"""The subcommands of ``oasis``, one module each."""
