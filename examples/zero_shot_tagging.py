# %% [markdown]
# # Entities of any labels: GLiNER
#
# A `TokenClassifier` knows the labels that it was trained on. A `ZeroShotTagger` reads the labels
# together with the text, so you name them when you ask. Here a small encoder learns this from 500
# sentences.
#
# ```shell
# python examples/zero_shot_tagging.py
# ```
#
# Expected: entity F1 0.274 on 212 sentences; PyTorch, one seed, up to fifteen minutes. A
# `TokenClassifier` learns these four labels faster: 0.411 and 0.427 after two epochs.
#
# You need no training to begin. Released models find entities of any label at once:
#
# ```python
# tagger = bert_keras.ZeroShotTagger.from_preset("hf://urchade/gliner_medium-v2.1")
# tagger.tag("Ada Lovelace was born in London in 1815.", ["person", "city", "year"])
# ```

# %%
import os

import keras

import bert_keras
from bert_keras import datasets, metrics, plots

# %% [markdown]
# ## Data
#
# Each sentence is a list of words with a tag for each. A label is text that the model reads, so
# abbreviations are replaced with words. Character positions work too: `fit(["Ada was here."],
# [[(0, 3, "person")]])`.

# %%
NAMES = {
    "PER": "person",
    "LOC": "location",
    "ORG": "organisation",
    "MISC": "nationality, work or event",
}


def in_words(rows):
    return [[tag if tag == "O" else tag[:2] + NAMES[tag[2:]] for tag in row] for row in rows]


sentences = datasets.read_conll("examples/data/wikigold/wikigold.conll.txt")
rows = range(len(sentences))
dev = sentences.take(rows[::8])
train = sentences.take([row for row in rows if row % 8][:500])
print(list(zip(train.words[0], in_words(train.tags)[0], strict=True)))

# %% [markdown]
# ## Model
#
# A row is `[CLS] marker person marker location ... separator word word ... [SEP]`. The model
# compares each span of up to 12 words with each label. The checkpoint has no markers, so its mask
# token takes their place.

# %%
keras.utils.set_random_seed(0)
tagger = bert_keras.ZeroShotTagger.from_preset("minilm_l6_en_uncased", max_length=128)

# %% [markdown]
# ## Train
#
# Of all spans only few have a label. The default loss gives these three times the weight of the
# others.

# %%
tagger.compile(learning_rate=5e-4)
tagger.fit(train.words, in_words(train.tags), epochs=6, batch_size=16, verbose=2)

# %% [markdown]
# ## Evaluate
#
# An entity is correct only if its first word, its last word and its label are correct. A lower
# threshold finds more entities, and more wrong ones.

# %%
labels = list(NAMES.values())
for threshold in (0.3, 0.5):
    answers = tagger.tag(dev.words, labels, threshold=threshold)
    tags = [[tag for _, tag in answer["words"]] for answer in answers]
    scores = metrics.entity_scores(in_words(dev.tags), tags)
    print(threshold, {name: round(scores[name], 3) for name in ("f1", "precision", "recall")})

# %% [markdown]
# ## Ask
#
# The answers have the form of `TokenClassifier.tag`, with a probability for each entity.
# `flat_ner=False` also returns entities inside others, `multi_label=True` several labels for the
# same words.

# %%
texts = ["Ada Lovelace lived in London .", "He played for Arsenal until 1998 ."]
answers = tagger.tag(texts, ["person", "location", "organisation"], threshold=0.3)
for answer in answers:
    print(
        answer["text"], [(e["text"], e["type"], round(e["score"], 2)) for e in answer["entities"]]
    )

# %%
plots.tags(answers)

# %% [markdown]
# Labels that were not in the training data work as far as the model knows their words. Four labels
# teach little about others. The released models were trained on thousands of labels.

# %%
for answer in tagger.tag(texts, ["football club", "woman"], threshold=0.2):
    print(
        answer["text"], [(e["text"], e["type"], round(e["score"], 2)) for e in answer["entities"]]
    )

# %% [markdown]
# ## Save, and hand over
#
# The folder of `export_to_huggingface` is read by the package `gliner`:
# `gliner.GLiNER.from_pretrained("output/gliner")`.

# %%
os.makedirs("output", exist_ok=True)
tagger.save("output/zero_shot_tagging.keras")
tagger.export_to_huggingface("output/gliner")
print(sorted(os.listdir("output/gliner")))

# %% [markdown]
# ## With your own data
#
# Fine-tune a released model on texts with entities, as tuples `(start, end, label)` or as the
# dicts that `tag` returns. A few hundred texts help. Mix in other labels, so that the model does
# not forget them:
#
# ```python
# tagger = bert_keras.ZeroShotTagger.from_preset("hf://urchade/gliner_medium-v2.1")
# tagger.compile(learning_rate=1e-5, head_lr_multiplier=5)
# tagger.fit(texts, entities, epochs=3)
# ```
#
# Words are runs of letters and digits. Chinese and Japanese have no spaces between words: pass
# lists of characters or words instead of texts.
