"""The command `marag`: one thin file per command."""
