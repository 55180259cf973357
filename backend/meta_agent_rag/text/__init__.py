"""Processing of plain text: normal forms, words, sentences and names."""
