"""Drive copier: locate the template, turn a request into answers, render it into changes."""

from tilewright.render.batch import Batch
from tilewright.render.request import complete
from tilewright.render.request import complete_changes
from tilewright.render.scaffold import RenderedFile
from tilewright.render.scaffold import Rendering
from tilewright.render.scaffold import render
from tilewright.render.scaffold import scaffold
from tilewright.render.source import Source
from tilewright.render.source import locate

__all__ = [
    "Batch",
    "RenderedFile",
    "Rendering",
    "Source",
    "complete",
    "complete_changes",
    "locate",
    "render",
    "scaffold",
]
