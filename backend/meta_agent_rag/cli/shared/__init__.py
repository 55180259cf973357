"""Shared by the commands: options, output, and the display of rounds."""
