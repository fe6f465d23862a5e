"""ELMo, GPT, BERT: which way each layer reads."""

import itertools

from figures.drawing import BLUE, GREEN, GREY, ORANGE, Drawing

WORDS = {
    "en": (
        "Directions",
        ("ELMo: two readings, joined at the end", "GPT: to the right", "BERT: both"),
    ),
    "zh": ("方向", ("ELMo：两次单向阅读，最后拼接", "GPT：只向右", "BERT：同时看两边")),
}


def draw(language):
    title, names = WORDS[language]
    drawing = Drawing(900, 230, title)
    for panel, name in enumerate(names):
        left = 15 + panel * 300
        drawing.words(left + 135, 20, name, bold=True, size=13)
        xs = [left + 20 + 76 * i for i in range(4)]
        for x in xs:
            drawing.box(x - 16, 186, 40, 26, "w", GREY, size=12)
        layers = (
            ((146, GREEN, 1), (106, ORANGE, -1)) if panel == 0 else ((146, BLUE, 0), (90, BLUE, 0))
        )
        for y, fill, _ in layers:
            for x in xs:
                drawing.box(x - 16, y - 13, 40, 26, "", fill)
        if panel == 0:
            for y, _, way in layers:
                for a, b in itertools.pairwise(xs):
                    ends = (a + 24, b - 18) if way > 0 else (b - 16, a + 26)
                    drawing.arrow(ends[0], y, ends[1], y)
            for x in xs:
                drawing.box(x - 16, 48, 40, 15, "", ORANGE)
                drawing.box(x - 16, 63, 40, 15, "", GREEN)
                drawing.arrow(x + 4, 92, x + 4, 80)
                drawing.arrow(x + 4, 186, x + 4, 161)
            continue
        for low, high in ((186, 161), (133, 105)):
            for i, a in enumerate(xs):
                for j, b in enumerate(xs):
                    if panel == 2 or j >= i:
                        drawing.arrow(a + 4, low, b + 4, high)
    return str(drawing)
