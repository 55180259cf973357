"""The rows of a run, one for each question and method: written, read again, summed up."""
