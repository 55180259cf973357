"""A call of the loop: the evidence packed, the messages laid out, and the JSON that is asked for."""
