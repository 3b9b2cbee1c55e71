"""Draws what a terminal showed: picture.py TEXT SVG. The text has the terminal's own colours; no font is fetched by whoever looks at it."""

import re
import sys

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

text, svg = sys.argv[1:]
console = Console(record=True, width=150, file=open("/dev/null", "w", encoding="utf-8"), force_terminal=True)
with open(text, encoding="utf-8") as shown:
    console.print(Text.from_ansi(shown.read().rstrip()))
plain = re.sub(r" *<!--.*?-->\n| *@font-face \{\{.*?\n    \}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
console.save_svg(svg, title="sweeper", code_format=plain.replace("Fira Code, monospace", "monospace"))
