"""XLNet: one sentence, two orders of prediction, and what each position may read."""

from figures.drawing import GREEN, GREY, Drawing

WORDS = {
    "en": (
        "XLNet: orders of prediction",
        ("the", "old", "door", "fell"),
        "order",
        "row reads column",
    ),
    "zh": ("XLNet：预测的顺序", ("武", "松", "打", "虎"), "顺序", "行读列"),
}


def draw(language):
    title, words, order_name, reads = WORDS[language]
    drawing = Drawing(700, 235, title)
    for panel, order in enumerate(((0, 1, 2, 3), (2, 0, 3, 1))):
        left = 90 + panel * 340
        shown = " → ".join(words[i] for i in order)
        drawing.words(left + 80, 20, f"{order_name}: {shown}", bold=True, size=13)
        for i, word in enumerate(words):
            drawing.words(left + i * 40 + 19, 50, word, size=13)
            drawing.words(left - 10, 82 + i * 34, word, size=13, anchor="end")
            for j in range(4):
                fill = GREEN if order.index(j) < order.index(i) else "#ffffff"
                drawing.box(left + j * 40, 66 + i * 34, 38, 31, "", fill if i != j else GREY)
    drawing.words(350, 220, reads, size=12)
    return str(drawing)
