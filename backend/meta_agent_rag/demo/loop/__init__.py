"""The parts of the tab Loop: a walk through the graph, and its display."""
