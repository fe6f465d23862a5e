"""The four shapes of fine-tuning, figure 4 of the paper: where the head reads."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, Drawing

SHAPES = (
    (("[CLS]", "w1", "w2", "w3"), (0,)),
    (("[CLS]", "A", "[SEP]", "B"), (0,)),
    (("[CLS]", "w1", "w2", "w3"), (1, 2, 3)),
    (("[CLS]", "Q", "[SEP]", "P", "P"), (3, 4)),
)
WORDS = {
    "en": (
        "The four shapes of fine-tuning",
        (
            ("One text, one class", "TextClassifier", ("class",)),
            ("Two texts, one class", "TextClassifier", ("class",)),
            ("One text, a tag a word", "TokenClassifier", ("tag", "tag", "tag")),
            ("Question and passage", "QuestionAnswering", ("start", "end")),
        ),
    ),
    "zh": (
        "微调的四种形状",
        (
            ("一段文本，一个类别", "TextClassifier", ("类别",)),
            ("两段文本，一个类别", "TextClassifier", ("类别",)),
            ("一段文本，每词一个标签", "TokenClassifier", ("标签", "标签", "标签")),
            ("问题与文章", "QuestionAnswering", ("起点", "终点")),
        ),
    ),
}


def draw(language):
    title, shapes = WORDS[language]
    drawing = Drawing(900, 250, title)
    for number, ((tokens, reads), (name, cls, outputs)) in enumerate(
        zip(SHAPES, shapes, strict=True)
    ):
        left = 10 + number * 222
        drawing.words(left + 105, 20, name, bold=True)
        drawing.box(left, 120, 212, 48, "BERT", BLUE, bold=True)
        step = 212 / len(tokens)
        for i, token in enumerate(tokens):
            middle = left + step * (i + 0.5)
            drawing.box(middle - step / 2 + 2, 192, step - 4, 26, token, GREY, size=11)
            drawing.arrow(middle, 192, middle, 170)
        for i, output in zip(reads, outputs, strict=True):
            middle = left + step * (i + 0.5)
            drawing.box(middle - step / 2 + 2, 48, step - 4, 26, output, GREEN, size=11)
            drawing.box(middle - step / 2 + 2, 86, step - 4, 18, "", ORANGE)
            drawing.arrow(middle, 120, middle, 106)
            drawing.arrow(middle, 86, middle, 76)
        drawing.words(left + 105, 236, cls, size=12)
    return str(drawing)
