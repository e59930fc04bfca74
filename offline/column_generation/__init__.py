"""The configuration LP: a bound by prices, found by column generation."""
