"""A run distributed over the machines of a cluster: its shards as tasks of an engine, merged at the end."""
