"""What fits in one slot: patterns of single servers, and the cuts that follow from them."""
