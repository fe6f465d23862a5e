"""What enters the encoder: three rows for each position, added."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, VIOLET, Drawing

WORDS = {
    "en": {
        "title": "The input embeddings of BERT",
        "tokens": ("[CLS]", "he", "slept", "[SEP]", "it", "rained", "[SEP]"),
        "rows": ("token", "segment", "position", "sum"),
        "after": "then layer normalisation and dropout; nothing is concatenated",
    },
    "zh": {
        "title": "BERT 的输入嵌入",
        "tokens": ("[CLS]", "他", "睡", "[SEP]", "下", "雨", "[SEP]"),
        "rows": ("词元", "分段", "位置", "相加"),
        "after": "随后是层归一化与 dropout；没有任何拼接",
    },
}


def draw(language):
    words = WORDS[language]
    tokens, rows = words["tokens"], words["rows"]
    drawing = Drawing(760, 290, words["title"])
    for i, token in enumerate(tokens):
        x = 100 + i * 92
        segment = "A" if i < 4 else "B"
        drawing.box(x, 12, 84, 30, token, GREY, bold=True)
        drawing.box(x, 62, 84, 34, f"E({token})", BLUE, size=12)
        drawing.words(x + 42, 107, "+")
        drawing.box(x, 118, 84, 34, f"E({segment})", GREEN if segment == "A" else VIOLET, size=12)
        drawing.words(x + 42, 163, "+")
        drawing.box(x, 174, 84, 34, f"E({i})", ORANGE, size=12)
        drawing.words(x + 42, 219, "=")
        drawing.box(x, 230, 84, 30, "", GREY)
    for y, row in zip((79, 135, 191, 245), rows, strict=True):
        drawing.words(88, y, row, anchor="end", bold=True)
    drawing.words(410, 276, words["after"], size=12)
    return str(drawing)
