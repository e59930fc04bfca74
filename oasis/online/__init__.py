"""The online algorithm: prices, the search for the best schedule, and OASiS itself."""
