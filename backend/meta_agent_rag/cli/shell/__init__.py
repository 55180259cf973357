"""The interactive shell of `marag chat`: reading lines, running turns, slash commands, and what is shown."""
