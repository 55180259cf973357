"""The tabs of the demo, a file each: `build(workbench)` lays one out inside its `gr.Tab`."""
