# %% [markdown]
# # Chinese entities, with your own vocabulary
#
# This example starts from scratch: characters become the vocabulary, and a small, randomly
# initialized encoder learns to find people and places in generated sentences.
#
# ```shell
# python examples/chinese_ner.py
# ```
#
# Expected: entity F1 1.000 on the 20 held-out sentences, which follow the same patterns; PyTorch,
# three seeds, 7 seconds of one core each.

# %%
import os

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# Four patterns, five people and five places make 100 sentences. Chinese has no spaces, so each
# character is a word with a tag.

# %%
PEOPLE = ("王小明", "李华", "张伟", "陈静", "刘洋")
PLACES = ("北京", "上海", "广州", "成都", "哈尔滨")
PATTERNS = ("{a}住在{b}。", "{a}昨天去了{b}。", "他在{b}见到{a}。", "{b}的冬天很冷，{a}说。")


def tagged(text, names):
    """Returns the characters of a text, and their tags."""
    tags = ["O"] * len(text)
    for name, kind in names:
        start = text.index(name)
        tags[start : start + len(name)] = [f"B-{kind}", *[f"I-{kind}"] * (len(name) - 1)]
    return list(text), tags


rows = [
    tagged(pattern.format(a=a, b=b), ((a, "PER"), (b, "LOC")))
    for pattern in PATTERNS
    for a in PEOPLE
    for b in PLACES
]
sentences = datasets.TaggedSentences(*map(list, zip(*rows, strict=True)))
order = np.random.default_rng(0).permutation(len(sentences))
dev, train = sentences.take(order[::5]), sentences.take(np.delete(order, np.s_[::5]))
tags = datasets.tag_names(sentences)
print(list(zip(train.words[0], train.tags[0], strict=True)))

# %% [markdown]
# ## Vocabulary and model
#
# A WordPiece vocabulary splits Chinese into single characters.

# %%
keras.utils.set_random_seed(0)
texts = ["".join(words) for words in train.words]
tokenizer = bert_keras.WordPieceTokenizer(bert_keras.train_wordpiece(texts=texts))
backbone = bert_keras.BertBackbone(tokenizer.vocabulary_size, 2, 4, 64, 256)
preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=64)
tagger = bert_keras.TokenClassifier(
    backbone, preprocessor=preprocessor, num_classes=len(tags), label_names=tags
)

# %% [markdown]
# ## Train and evaluate
#
# The held-out sentences follow the same patterns, so a score of 1 shows that the pipeline works,
# and nothing more.

# %%
tagger.compile(learning_rate=2e-3)
history = tagger.fit(train.words, train.tags, batch_size=8, epochs=6, verbose=2)
scores = tagger.evaluate_tags(dev.words, dev.tags)
print({name: round(scores[name], 3) for name in ("f1", "precision", "recall", "accuracy")})

# %% [markdown]
# ## Use

# %%
answer = tagger.tag([list("李华昨天去了哈尔滨。")])
print(answer[0]["entities"])
os.makedirs("output", exist_ok=True)
tagger.save("output/chinese_ner.keras")

# %%
plots.tags(answer)

# %%
plots.learning_curves(history, path="output/chinese_ner/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# For real text, you need a pre-trained checkpoint and tagged sentences, such as MSRA's:
#
# ```python
# train = datasets.read_conll("msra_train.txt")
# tags = datasets.tag_names(train)
# tagger = bert_keras.TokenClassifier.from_preset(
#     "bert_base_zh", num_classes=len(tags), label_names=tags
# )
# tagger.fit(train.words, train.tags)
# ```
