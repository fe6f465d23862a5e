"""CBOW and skip-gram: which words are given, and which asked for."""

from figures.drawing import BLUE, GREEN, ORANGE, Drawing

WORDS = {
    "en": ("CBOW and skip-gram", ("he", "took", "hat", "and"), "his", "mean", "CBOW", "skip-gram"),
    "zh": ("CBOW 与 skip-gram", ("林", "冲", "了", "花"), "提", "平均", "CBOW", "skip-gram"),
}


def draw(language):
    title, around, middle, mean, cbow, skip_gram = WORDS[language]
    drawing = Drawing(760, 230, title)
    for i, word in enumerate(around):
        y = 40 + i * 46
        drawing.box(20, y, 80, 34, word, BLUE)
        drawing.arrow(100, y + 17, 148, 125)
        drawing.box(650, y, 80, 34, word, GREEN)
        drawing.arrow(522, 125, 648, y + 17)
    drawing.box(150, 108, 80, 34, mean, ORANGE)
    drawing.arrow(230, 125, 268, 125)
    drawing.box(270, 108, 80, 34, middle, GREEN)
    drawing.box(440, 108, 80, 34, middle, BLUE)
    drawing.words(185, 20, cbow, bold=True)
    drawing.words(585, 20, skip_gram, bold=True)
    return str(drawing)
