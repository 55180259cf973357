"""Dense and lexical stores, one file each: `matrix` and `words` in a folder, `qdrant` and `elastic` on servers."""
