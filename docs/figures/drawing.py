"""Boxes, arrows and words as SVG, on a light card that can be read in dark mode too."""

import html

BLUE, GREEN, ORANGE, GREY, RED, VIOLET = (
    "#dbe9f9",
    "#dcf0dd",
    "#fde6cd",
    "#ececec",
    "#f9d9d7",
    "#e8def5",
)
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', 'Noto Sans CJK SC', 'Microsoft YaHei', sans-serif"


class Drawing:
    """A picture of `width` by `height`; each method adds one thing."""

    def __init__(self, width, height, title):
        self.width, self.height, self.title = width, height, title
        self.parts = []

    def box(self, x, y, width, height, words="", fill=BLUE, size=14, bold=False):
        """A rounded box; lines of its words are split by a line break."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="{fill}" '
            'stroke="#5b6672"/>'
        )
        self.words(x + width / 2, y + height / 2, words, size=size, bold=bold)

    def words(self, x, y, words, size=14, anchor="middle", bold=False, fill="#1c2530"):
        """Words around the point: `anchor` is "start", "middle" or "end"."""
        lines = words.split("\n")
        weight = ' font-weight="600"' if bold else ""
        for number, line in enumerate(lines):
            down = y + (number - (len(lines) - 1) / 2) * size * 1.3 + size * 0.35
            self.parts.append(
                f'<text x="{x:.1f}" y="{down:.1f}" font-size="{size}" text-anchor="{anchor}" '
                f'fill="{fill}"{weight}>{html.escape(line)}</text>'
            )

    def arrow(self, x1, y1, x2, y2, color="#5b6672", dashed=False):
        """A straight arrow."""
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{color}" stroke-width="1.6" '
            f'marker-end="url(#head)"{dash}/>'
        )

    def path(self, points, color="#5b6672"):
        """An arrow through several points."""
        places = " ".join(f"{x},{y}" for x, y in points)
        self.parts.append(
            f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="1.6" '
            'marker-end="url(#head)"/>'
        )

    def __str__(self):
        return "\n".join(
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
                f'width="{self.width}" height="{self.height}" font-family="{FONT}" role="img">',
                f"<title>{html.escape(self.title)}</title>",
                '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#5b6672"/>'
                "</marker></defs>",
                f'<rect width="{self.width}" height="{self.height}" rx="8" fill="#ffffff"/>',
                *self.parts,
                "</svg>\n",
            )
        )
