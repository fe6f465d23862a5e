# %% [markdown]
# # Common errors
#
# This page triggers each error on purpose. Every message states the rule, what was received, and
# what to do.

# %%
import bert_keras

MINI = "bert_mini_en_gutenberg"
classifier = bert_keras.TextClassifier.from_preset(MINI, num_classes=2)
texts = ["A ship came in.", "The horse was lame."]


def shown(action):
    """Prints the error that an action makes."""
    try:
        action()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        raise AssertionError("This was meant to fail.")


# %% [markdown]
# ## Could not locate class 'TextClassifier'
#
# `keras.models.load_model` can find this package's classes only after the package is imported. Put
# `import bert_keras` first. The error comes from Keras; `'module': 'bert_keras...'` in its text
# names the package to import. Below, a new process loads the file without the import, then with it:

# %%
import os
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "sentiment.keras")
    classifier.save(path)
    code = f"import keras; keras.models.load_model({path!r})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    print(found.stderr.splitlines()[-1][:330], "...")
    code = "import bert_keras; " + code
    print(subprocess.run([sys.executable, "-c", code]).returncode)

# %% [markdown]
# ## Unknown checkpoint names
#
# Model names from other libraries are not registered here. Pass a folder, or `hf://owner/name`.

# %%
shown(lambda: bert_keras.TextClassifier.from_preset("bert-base-chinese"))

# %% [markdown]
# ## Names from transformers
#
# Some classes, methods, inputs and arguments have other names here. The error tells you which name
# to use.

# %%
shown(lambda: bert_keras.AutoModelForMaskedLM)
shown(lambda: bert_keras.TextClassifier.from_pretrained(MINI))
shown(lambda: classifier.predict({"token_ids": [[1, 2]], "attention_mask": [[1, 1]]}))
shown(lambda: classifier.compile(lr=1e-3))

# %% [markdown]
# ## Labels
#
# Pass one label per text: an integer that counts from 0, or a name from `label_names`. A new head
# without `label_names` learns the names.

# %%
shown(lambda: classifier.fit(texts, [0]))
shown(lambda: classifier.fit(texts, [1, 2]))
shown(lambda: classifier.fit(texts, [[0.9, 0.9], [1, 0]]))

# %% [markdown]
# ## Texts
#
# In a pandas column, a missing text is `None` or `nan`. Drop such rows, or fill them in. Bytes must
# be UTF-8; decode others to `str`.

# %%
shown(lambda: classifier.fit(["A ship came in.", None], [0, 1]))
shown(lambda: classifier.fit(["Un café.".encode("latin-1"), b"A horse."], [0, 1]))

# %% [markdown]
# ## Too long
#
# Raw text is truncated to the model's length without an error: see
# [long texts](../guides/long_texts.md). Token ids that exceed this length, and a `max_length` above
# the number of positions, raise an error.

# %%
shown(lambda: classifier.predict({"token_ids": [[1] * 600]}))
shown(lambda: bert_keras.TextClassifier.from_preset(MINI, max_length=512))

# %% [markdown]
# ## Ids from another vocabulary

# %%
shown(lambda: classifier.predict({"token_ids": [[1, 99_999]]}))

# %% [markdown]
# ## Text that the vocabulary does not cover
#
# This raises no error, which makes it more dangerous: an English checkpoint turns Chinese into
# `[UNK]`. If scores are unexpectedly low, look at the tokens first.

# %%
classifier.tokenizer.tokenize("我爱北京。")

# %% [markdown]
# ## No mask to fill
#
# Use the tokenizer's own mask token: `[MASK]` for BERT, `<mask>` for RoBERTa.

# %%
language_model = bert_keras.MaskedLM.from_preset(MINI)
shown(lambda: language_model.fill_mask("She opened the door."))

# %% [markdown]
# ## Words and tags
#
# A `TokenClassifier` trains on lists of words, with one tag per word.

# %%
tagger = bert_keras.TokenClassifier.from_preset(MINI, num_classes=3)
shown(lambda: tagger.fit([["A", "ship", "sails"]], [[0, 1]]))

# %% [markdown]
# ## Answers
#
# An answer is a pair: its text and its start position, because the same words may occur twice in
# the passage.

# %%
reader = bert_keras.QuestionAnswering.from_preset(MINI)
shown(lambda: reader.fit((["Who came?"], ["Holmes came."]), ["Holmes"]))

# %% [markdown]
# ## The new head starts at random
#
# A pre-trained checkpoint has no head for your task. `from_preset` warns about this, and `fit`
# trains the head. If the warning names layers of the *encoder* instead, the checkpoint is
# incomplete.

# %%
import warnings

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bert_keras.TextClassifier.from_preset(MINI)
print(caught[-1].message)

# %% [markdown]
# ## The model learns nothing
#
# | what you see | what to check |
# |---|---|
# | accuracy equals the share of the largest class from the first epoch on | `epochs` and `learning_rate`: omit them, and the defaults adapt to the [number of examples](../guides/few_examples.md). Then check that labels and texts are in the same order |
# | the loss becomes `nan` | the learning rate: it may be too high. The dtype: float16 needs loss scaling, so use `mixed_bfloat16` |
# | good on the training set, bad on the dev set | the number of epochs: try fewer |
# | the dev score is too good to be true | texts that occur in both sets: `bert_keras.datasets.count_shared_texts` counts them |
# | each run gives a different result | nothing: this is normal on small data sets. Train with three seeds, and report the mean and the spread |
# | Keras ignores `KERAS_BACKEND` | whether you set it before the first import of Keras |
