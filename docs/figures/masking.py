"""A sentence, masked: what is chosen, what the model sees, where the loss counts."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, RED, Drawing

WORDS = {
    "en": {
        "title": "Masking",
        "rows": ("text", "seen", "loss at"),
        "tokens": ("[CLS]", "he", "took", "his", "hat", "and", "left", "[SEP]"),
        "other": "horse",
        "how": ("80 %: [MASK]", "10 %: another", "10 %: itself"),
    },
    "zh": {
        "title": "掩码",
        "rows": ("原文", "看到的", "计入损失"),
        "tokens": ("[CLS]", "林", "冲", "提", "了", "花", "枪", "[SEP]"),
        "other": "酒",
        "how": ("80%：[MASK]", "10%：换成别的", "10%：保持原样"),
    },
}
CHOSEN = {2: 0, 4: 1, 6: 2}


def draw(language):
    words = WORDS[language]
    drawing = Drawing(800, 215, words["title"])
    for i, token in enumerate(words["tokens"]):
        x = 90 + i * 87
        chosen = CHOSEN.get(i)
        drawing.box(x, 15, 80, 30, token, GREY if chosen is None else BLUE)
        seen = token if chosen in (None, 2) else ("[MASK]", words["other"])[chosen]
        fill = GREY if chosen is None else (ORANGE, RED, GREEN)[chosen]
        drawing.arrow(x + 40, 47, x + 40, 68)
        drawing.box(x, 70, 80, 30, seen, fill)
        if chosen is not None:
            drawing.arrow(x + 40, 102, x + 40, 123)
            drawing.box(x, 125, 80, 30, token, BLUE)
            drawing.words(x + 40, 178, words["how"][chosen], size=12)
    for y, row in zip((30, 85, 140), words["rows"], strict=True):
        drawing.words(80, y, row, anchor="end", bold=True, size=13)
    return str(drawing)
