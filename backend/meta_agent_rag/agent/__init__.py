"""The loop: retrieve, write, diagnose, remediate."""
