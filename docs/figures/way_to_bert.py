"""The way to BERT: what each step handed on."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, VIOLET, Drawing

WORDS = {
    "en": (
        "The way to BERT",
        (
            ("n-grams", "counts"),
            ("NNLM\n2003", "word vectors"),
            ("word2vec, GloVe\n2013, 2014", "pre-training"),
            ("ELMo\n2018", "context"),
            ("GPT\n2018", "fine-tuning,\nTransformer"),
            ("BERT\n2018", "masks:\nboth sides"),
        ),
    ),
    "zh": (
        "走向 BERT",
        (
            ("n 元语法", "计数"),
            ("NNLM\n2003", "词向量"),
            ("word2vec、GloVe\n2013、2014", "预训练"),
            ("ELMo\n2018", "上下文"),
            ("GPT\n2018", "微调与\nTransformer"),
            ("BERT\n2018", "掩码：\n同时看两边"),
        ),
    ),
}


def draw(language):
    title, steps = WORDS[language]
    drawing = Drawing(900, 130, title)
    fills = (GREY, VIOLET, VIOLET, GREEN, ORANGE, BLUE)
    for i, ((name, gift), fill) in enumerate(zip(steps, fills, strict=True)):
        x = 10 + i * 149
        drawing.box(x, 20, 125, 54, name, fill, size=13, bold=True)
        drawing.words(x + 62, 100, gift, size=12)
        if i:
            drawing.arrow(x - 24, 47, x - 2, 47)
    return str(drawing)
