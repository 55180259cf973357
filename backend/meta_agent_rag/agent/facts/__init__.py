"""The monitor and diagnosis by facts: what the vote elected, which facts are open, and how to repair them."""
