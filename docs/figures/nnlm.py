"""NNLM: three words, their vectors, one hidden layer, a softmax."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, VIOLET, Drawing

WORDS = {
    "en": (
        "NNLM",
        ("he", "took", "his"),
        "row of the table",
        "concatenated",
        "dense, tanh",
        "softmax",
        "hat?",
    ),
    "zh": (
        "NNLM",
        ("花", "和", "尚"),
        "查表得到的向量",
        "首尾相接",
        "全连接，tanh",
        "softmax",
        "鲁？",
    ),
}


def draw(language):
    title, words, table, joined, dense, softmax, answer = WORDS[language]
    drawing = Drawing(760, 200, title)
    for i, word in enumerate(words):
        y = 25 + i * 56
        drawing.box(15, y, 70, 36, word, GREY)
        drawing.box(125, y, 130, 36, table, VIOLET, size=12)
        drawing.arrow(85, y + 18, 123, y + 18)
        drawing.arrow(255, y + 18, 293, 99)
    for x, width, text, fill in (
        (295, 100, joined, VIOLET),
        (430, 100, dense, BLUE),
        (565, 80, softmax, ORANGE),
        (680, 65, answer, GREEN),
    ):
        drawing.box(x, 76, width, 46, text, fill, size=13)
    for start, end in ((395, 428), (530, 563), (645, 678)):
        drawing.arrow(start, 99, end, 99)
    return str(drawing)
