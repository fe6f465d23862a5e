# %% [markdown]
# # From transformers and back
#
# A folder written by `save_pretrained` loads with its head and its labels, gives the same outputs,
# trains on any backend, and can be exported back. Line by line, with `import bert_keras`:
#
# | transformers | bert_keras |
# |---|---|
# | `tokenizer = AutoTokenizer.from_pretrained(folder)` | in the model |
# | `model = AutoModelForSequenceClassification.from_pretrained(folder)` | `model = bert_keras.TextClassifier.from_preset(folder)` |
# | `tokenizer(texts, padding=True, truncation=True, return_tensors="pt")` | `model.preprocessor(texts)` |
# | `model(**tokenizer(texts, ...)).logits` | `model.predict(texts, verbose=0)` |
# | `pipeline("text-classification", model=folder)(texts)` | `model.classify(texts)` |
# | `TrainingArguments(learning_rate=1e-2, warmup_ratio=0.1)` | `model.compile(learning_rate=1e-2)` |
# | `Trainer(model, arguments, train_dataset=...).train()` | `model.fit(texts, labels, epochs=20, verbose=0)` |
# | `trainer.evaluate()` | `model.evaluate(texts, labels, verbose=0, return_dict=True)` |
# | `model.save_pretrained(output)` | `model.export_to_huggingface(output)` |
#
# `AutoModelForTokenClassification` is `TokenClassifier`, `AutoModelForQuestionAnswering` is
# `QuestionAnswering`, `AutoModelForMaskedLM` is `MaskedLM`.
#
# ```shell
# python examples/migrating_from_transformers.py
# ```
#
# Expected: logits that differ by at most 1e-6, and `positive` with the same probability, above 0.9,
# on both sides after training; PyTorch, 7 seconds of one core.

# %%
import os

import numpy as np
import transformers

import bert_keras
from bert_keras import plots

# %% [markdown]
# ## A checkpoint of transformers
#
# It is small and random, so this page needs no download. Use the path of your own folder instead.

# %%
folder = "output/migrating_from_transformers/theirs"
os.makedirs(folder, exist_ok=True)
transformers.set_seed(0)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "good", "bad", "film", "."]
with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as file:
    file.write("\n".join(words))
config = transformers.BertConfig(
    vocab_size=len(words),
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    initializer_range=0.1,
    id2label={0: "negative", 1: "positive"},
)
transformers.BertForSequenceClassification(config).save_pretrained(folder)
transformers.BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(folder)

# %% [markdown]
# ## Load
#
# With transformers:

# %%
texts = ["a good film .", "a bad film ."]
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
theirs = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
expected = theirs(**tokenizer(texts, padding=True, return_tensors="pt")).logits.detach().numpy()

# %% [markdown]
# With bert_keras, where the model includes its tokenizer:

# %%
model = bert_keras.TextClassifier.from_preset(folder)
logits = model.predict(texts, verbose=0)
print("largest difference", np.abs(logits - expected).max())
print(model.classify(texts))
print(model.preprocessor(texts))

# %% [markdown]
# ## Train
#
# `compile` and `fit` replace `TrainingArguments` and `Trainer`. Labels may be names.

# %%
texts, labels = ["a good film .", "a bad film ."] * 16, ["positive", "negative"] * 16
model.compile(learning_rate=1e-2)
history = model.fit(texts, labels, epochs=20, verbose=0)
print(model.evaluate(texts, labels, verbose=0, return_dict=True))

# %% [markdown]
# ## Export to transformers
#
# transformers loads the exported folder and gives the same predictions.

# %%
output = "output/migrating_from_transformers/back"
model.export_to_huggingface(output)
print(transformers.pipeline("text-classification", output)("a good film ."))
print(model.classify("a good film ."))

# %%
plots.learning_curves(history, path="output/migrating_from_transformers/learning_curves.png")

# %% [markdown]
# ## With your own checkpoint
#
# `from_preset` takes a folder or `"hf://owner/name"`.
# [Checkpoints](../docs/en/guides/checkpoints.md) lists the formats and heads that it can load.
