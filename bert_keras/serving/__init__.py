"""A model behind an address: answers in batches, in the protocols that clients speak."""
