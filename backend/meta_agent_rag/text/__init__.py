"""Plain text, whoever wrote it: normal forms, words, sentences and names."""
