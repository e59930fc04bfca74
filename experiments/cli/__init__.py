"""The ``oasis`` command."""
