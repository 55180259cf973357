"""The interactive shell of `marag chat`: input lines, turns, slash commands, and output."""
