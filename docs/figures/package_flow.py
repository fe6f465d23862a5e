"""From a text to an answer: the parts of the package, and the names that they pass on."""

from figures.drawing import BLUE, GREEN, GREY, ORANGE, VIOLET, Drawing

WORDS = {
    "en": {
        "title": "From a text to an answer",
        "text": "text, or\npair of texts",
        "tokenizer": "tokenizer\nids, offsets",
        "packing": "packing\n[CLS] … [SEP]",
        "embeddings": "embeddings",
        "encoder": "encoder\nblock × n",
        "head": "head\nof the task",
        "answer": "answer",
        "preprocessor": "preprocessor",
        "backbone": "backbone: one class per paper",
        "task": "task: fit, evaluate, predict, and a method that answers",
        "inputs": "token_ids, segment_ids, padding_mask",
        "outputs": "sequence_output, pooled_output",
    },
    "zh": {
        "title": "从一段文本到一个答案",
        "text": "文本\n或文本对",
        "tokenizer": "分词器\n编号与位置",
        "packing": "拼装\n[CLS] … [SEP]",
        "embeddings": "嵌入",
        "encoder": "编码器\n块 × n",
        "head": "任务的\n预测头",
        "answer": "答案",
        "preprocessor": "预处理器",
        "backbone": "骨干网络：一篇论文一个类",
        "task": "任务：fit、evaluate、predict，以及一个直接回答的方法",
        "inputs": "token_ids, segment_ids, padding_mask",
        "outputs": "sequence_output, pooled_output",
    },
}


def draw(language):
    words = WORDS[language]
    drawing = Drawing(900, 250, words["title"])
    drawing.box(110, 20, 680, 190, fill="#fafafa")
    drawing.words(450, 40, words["task"], bold=True)
    drawing.box(125, 60, 250, 120, fill="#f3f0fa")
    drawing.words(250, 76, words["preprocessor"], size=13)
    drawing.box(400, 60, 260, 120, fill="#eef4fb")
    drawing.words(530, 76, words["backbone"], size=13)
    drawing.box(8, 95, 88, 60, words["text"], GREY, size=13)
    drawing.box(135, 95, 108, 60, words["tokenizer"], VIOLET)
    drawing.box(258, 95, 108, 60, words["packing"], VIOLET, size=13)
    drawing.box(410, 95, 110, 60, words["embeddings"], BLUE)
    drawing.box(540, 95, 110, 60, words["encoder"], BLUE)
    drawing.box(682, 95, 96, 60, words["head"], ORANGE)
    drawing.box(808, 95, 84, 60, words["answer"], GREEN)
    places = (96, 135), (243, 258), (366, 410), (520, 540), (650, 682), (778, 808)
    for start, end in places:
        drawing.arrow(start, 125, end, 125)
    drawing.words(388, 228, words["inputs"], size=12)
    drawing.words(666, 228, words["outputs"], size=12)
    drawing.arrow(388, 220, 388, 135, dashed=True)
    drawing.arrow(666, 220, 666, 135, dashed=True)
    return str(drawing)
