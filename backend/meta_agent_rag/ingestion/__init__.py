"""From files to the passages of a corpus: sources, parsers in a separate process, chunkers, pipeline."""
