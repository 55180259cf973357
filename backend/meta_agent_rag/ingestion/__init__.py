"""From files to the passages of a corpus: sources, parsers in a process of their own, chunkers, pipeline."""
