"""The tabs of the demo, one file each."""
