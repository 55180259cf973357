"""The tabs of the demo, one file each: `build(workbench)` lays one out inside its `gr.Tab`."""
