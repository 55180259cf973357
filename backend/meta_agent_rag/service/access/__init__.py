"""Who may ask, and how much: keys, wrong keys, rates, and what a day may cost."""
