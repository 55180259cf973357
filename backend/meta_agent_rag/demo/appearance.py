"""The demo's appearance, arrow keys and slider: a theme with system fonts, style sheets and a script."""

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradio.themes import Base

SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Helvetica Neue", "Arial", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "monospace")


def theme() -> "Base":
    """Gradio's plain theme in calm colours; nothing is fetched from third parties."""
    import gradio as gr

    plain = gr.themes.Base(
        primary_hue="indigo",
        secondary_hue="teal",
        neutral_hue="slate",
        radius_size="md",
        font=list(SANS),
        font_mono=list(MONO),
    )
    # Gradio's own colours are below the contrast of 4.5 that WCAG AA requires for text
    return plain.set(
        block_info_text_color="*neutral_600",
        block_info_text_color_dark="*neutral_300",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_300",
        input_placeholder_color="*neutral_600",
        input_placeholder_color_dark="*neutral_300",
        color_accent="*primary_600",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_600",
        button_primary_background_fill_hover_dark="*primary_700",
    )


def style_sheet() -> str:
    """The demo's own rules, for light and dark: all style sheets of this folder, by name."""
    sheets = [sheet for sheet in files(__package__).iterdir() if sheet.name.endswith(".css")]
    sheets.sort(key=lambda sheet: sheet.name)
    return "\n".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def head() -> str:
    """Additions to the page's head: the script of the arrow keys and of the slider over rounds."""
    return f"<script>{(files(__package__) / 'keys.js').read_text(encoding='utf-8')}</script>"
