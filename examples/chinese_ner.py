# %% [markdown]
# # Chinese entities, with a vocabulary of your own
#
# This starts from nothing: characters become the vocabulary, and a small random encoder learns to
# find people and places in generated sentences. For real data, pass a file and a checkpoint.
#
# ```shell
# python examples/chinese_ner.py
# python examples/chinese_ner.py --train_file msra_train.txt --preset bert_base_zh
# ```
#
# Expected: entity F1 1.000 on the 20 held-out sentences, which follow the same patterns; PyTorch,
# three seeds, 7 seconds of one core each.

# %%
import argparse
import sys

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument("--train_file", default=None, help="column file of characters and tags")
parser.add_argument("--preset", default=None, help="by default a small random model")
parser.add_argument("--epochs", type=int, default=6, help="passes over the training set")
parser.add_argument("--output_dir", default="output/chinese_ner", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
PEOPLE, PLACES = (
    ("王小明", "李华", "张伟", "陈静", "刘洋"),
    ("北京", "上海", "广州", "成都", "哈尔滨"),
)
PATTERNS = ("{a}住在{b}。", "{a}昨天去了{b}。", "他在{b}见到{a}。", "{b}的冬天很冷，{a}说。")


def tagged(text, names):
    """Returns the characters of a text, and their tags."""
    tags = ["O"] * len(text)
    for name, kind in names:
        start = text.index(name)
        tags[start : start + len(name)] = [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1)]
    return list(text), tags


if flags.train_file:
    sentences = datasets.read_conll(flags.train_file)
else:
    rows = [
        tagged(pattern.format(a=a, b=b), ((a, "PER"), (b, "LOC")))
        for pattern in PATTERNS
        for a in PEOPLE
        for b in PLACES
    ]
    sentences = datasets.TaggedSentences(*map(list, zip(*rows, strict=True)))
order = np.random.default_rng(0).permutation(len(sentences))
dev, train = sentences.take(order[::5]), sentences.take(np.delete(order, np.s_[::5]))
names = datasets.tag_names(sentences)

# %% [markdown]
# A WordPiece vocabulary splits Chinese into single characters.

# %%
keras.utils.set_random_seed(0)
options = {"num_classes": len(names), "label_names": names}
if flags.preset:
    tagger = bert_keras.TokenClassifier.from_preset(flags.preset, **options)
else:
    texts = ["".join(words) for words in train.words]
    tokenizer = bert_keras.WordPieceTokenizer(bert_keras.train_wordpiece(texts=texts))
    backbone = bert_keras.BertBackbone(tokenizer.vocabulary_size, 2, 4, 64, 256)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=64)
    tagger = bert_keras.TokenClassifier(backbone, preprocessor=preprocessor, **options)
tagger.compile(learning_rate=2e-3)
history = tagger.fit(train.words, train.tags, batch_size=8, epochs=flags.epochs, verbose=2)

# %%
scores = tagger.evaluate_tags(dev.words, dev.tags)
print({name: round(scores[name], 3) for name in ("f1", "precision", "recall", "accuracy")})
answer = tagger.tag([list("李华昨天去了哈尔滨。")])
print(answer[0]["entities"])
tagger.save(f"{flags.output_dir}.keras")

# %%
plots.tags(answer)

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
