"""The demo: a Gradio app in which a visitor watches an answer being doubted and repaired."""
