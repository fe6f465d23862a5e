"""One block of the encoder, as BERT has it: normalised after each sum."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, Drawing

WORDS = {
    "en": {
        "title": "One encoder block",
        "input": "x  (batch, seq_len, hidden_dim)",
        "attention": "self-attention\nsoftmax(QKᵀ / √d + mask) V",
        "norm": "add and normalise",
        "feed": "feed-forward: dense → GELU → dense",
        "output": "to the next block",
        "causal": "GPT: causal=True",
        "both": "BERT: causal=False",
        "who": "who may read whom",
    },
    "zh": {
        "title": "一个编码器块",
        "input": "x  (batch, seq_len, hidden_dim)",
        "attention": "自注意力\nsoftmax(QKᵀ / √d + 掩码) V",
        "norm": "相加，层归一化",
        "feed": "前馈网络：全连接 → GELU → 全连接",
        "output": "进入下一块",
        "causal": "GPT：causal=True",
        "both": "BERT：causal=False",
        "who": "谁能读到谁",
    },
}


def draw(language):
    words = WORDS[language]
    drawing = Drawing(760, 360, words["title"])
    drawing.box(30, 50, 330, 252, fill="#fafafa")
    parts = (
        (252, "attention", BLUE, 44),
        (190, "norm", GREY, 30),
        (126, "feed", ORANGE, 40),
        (64, "norm", GREY, 30),
    )
    for y, part, fill, height in parts:
        drawing.box(70, y, 250, height, words[part], fill, size=13)
    for start, end in ((252, 222), (190, 168), (126, 96), (64, 34), (326, 298)):
        drawing.arrow(195, start, 195, end)
    # The residual ways round.
    drawing.path(((195, 312), (48, 312), (48, 205), (68, 205)))
    drawing.path(((195, 180), (342, 180), (342, 79), (322, 79)))
    drawing.words(195, 338, words["input"], size=13)
    drawing.words(195, 20, words["output"], size=13)
    for left, name in ((420, "causal"), (600, "both")):
        drawing.words(left + 65, 90, words[name], bold=True, size=13)
        for row in range(5):
            for column in range(5):
                open_ = name == "both" or column <= row
                drawing.box(
                    left + column * 26, 110 + row * 26, 24, 24, "", GREEN if open_ else "#ffffff"
                )
    drawing.words(575, 265, words["who"], size=13)
    return str(drawing)
