"""The command `marag`: one file a command, each thin."""
