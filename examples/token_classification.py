# %% [markdown]
# # Tag words: named entity recognition (NER)
#
# Fine-tune a checkpoint to find people, places and organisations in sentences from Wikipedia.
#
# ```shell
# python examples/token_classification.py
# ```
#
# Expected: entity F1 0.411 and 0.427 on 212 sentences, after training on 500; PyTorch, two runs, up
# to four minutes each. With all 1,527 sentences and 5 epochs it is 0.734 ± 0.001.

# %%
import os

import keras

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# Each word has a tag: `B-PER` begins the name of a person, `I-PER` continues it, and `O` is outside
# of any entity. The data set has no predefined split, so every eighth sentence is held out.

# %%
sentences = datasets.read_conll("examples/data/wikigold/wikigold.conll.txt")
tags = datasets.tag_names(sentences)
rows = range(len(sentences))
dev = sentences.take(rows[::8])
train = sentences.take([row for row in rows if row % 8][:500])
print(tags)
print(list(zip(train.words[0], train.tags[0], strict=True)))

# %% [markdown]
# ## Model
#
# The tokenizer may split a word into several pieces. The head predicts the tag of each word from
# its first piece.

# %%
keras.utils.set_random_seed(0)
tagger = bert_keras.TokenClassifier.from_preset(
    "minilm_l6_en_uncased", num_classes=len(tags), label_names=tags, max_length=96
)

# %% [markdown]
# ## Train
#
# The head starts at random and sees few entities, so it needs a higher learning rate than a text
# classifier.

# %%
tagger.compile(learning_rate=3e-4)
history = tagger.fit(
    train.words, train.tags, epochs=2, validation_data=(dev.words, dev.tags), verbose=2
)

# %% [markdown]
# ## Evaluate
#
# Most words are `O`, so the accuracy per tag is high even for a poor model. Entity scores tell
# more: an entity is correct only if its start, its end and its type are all correct, as in
# conlleval.

# %%
scores = tagger.evaluate_tags(dev.words, dev.tags)
print({name: round(scores[name], 3) for name in ("f1", "precision", "recall", "accuracy")})

# %% [markdown]
# `precision` is the share of predicted entities that are correct, `recall` the share of true
# entities that are found, and `f1` their harmonic mean.

# %% [markdown]
# ## Use
#
# `tag` takes sentences, splits them into words, and returns the entities in each.

# %%
os.makedirs("output", exist_ok=True)
tagger.save("output/token_classification.keras")
loaded = keras.models.load_model("output/token_classification.keras")
answers = loaded.tag(["Ada Lovelace lived in London .", "He played for Arsenal until 1998 ."])
for answer in answers:
    print(answer["text"], [(e["text"], e["type"]) for e in answer["entities"]])

# %%
plots.tags(answers)

# %% [markdown]
# The confusion matrix counts words, by their true tag and the predicted one.

# %%
predicted = [tag for row in tagger.predict_tags(dev.words) for tag in row]
true = [tag for row in dev.tags for tag in row]
plots.confusion_matrix(
    true, predicted, tags, path="output/token_classification/confusion_matrix.png"
)

# %% [markdown]
# ## With your own data
#
# `read_conll` reads files with one word and tag per line, rows of `tokens` and `ner_tags`, and
# spans from doccano or Label Studio:
#
# ```python
# train = datasets.read_conll("train.conll")
# tagger.fit(train.words, train.tags)
# ```
#
# From the command line, which trains, evaluates and saves:
#
# ```shell
# bert-keras train token_classification --train_file train.conll --dev_file dev.conll
# ```
