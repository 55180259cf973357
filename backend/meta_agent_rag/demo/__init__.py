"""The demo: a Gradio app in which a visitor watches an answer being questioned and repaired."""
