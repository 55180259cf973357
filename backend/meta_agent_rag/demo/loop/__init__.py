"""The parts of the tab Loop: a walk through the graph, and what is shown of it."""
