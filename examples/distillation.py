# %% [markdown]
# # Distil a language model
#
# Train a small student on the outputs of a larger teacher. The student learns from the teacher's
# distribution over all tokens, from the masked tokens, and from the direction of the teacher's
# hidden states, as DistilBERT did.
#
# ```shell
# python examples/distillation.py
# ```
#
# Expected: a student with 71 % of the teacher's parameters has a perplexity of 259.1 before
# training and of 100.5 ± 1.3 after; the teacher has 93.7; PyTorch, three seeds, 25 seconds of one
# core each.

# %%
import keras

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data
#
# Sentences from reviews, without their labels.

# %%
train, heldout = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")

# %% [markdown]
# ## Teacher and student
#
# The student starts with the teacher's embeddings, its head, and its first and third layers. These
# initial weights matter more than the teacher's outputs.

# %%
keras.utils.set_random_seed(0)
teacher = bert_keras.MaskedLM.from_preset("bert_mini_en_gutenberg")
model = bert_keras.distill(teacher, student=(0, 2))


def perplexity(language_model):
    scores = language_model.evaluate(heldout.texts, verbose=0, return_dict=True)
    return round(scores["perplexity"], 1)


print("teacher", perplexity(teacher), "student before", perplexity(model.student))

# %% [markdown]
# ## Train

# %%
model.compile(learning_rate=5e-4)
history = model.fit(train.texts[:1000], epochs=1, verbose=2)
print("student after", perplexity(model.student))

# %% [markdown]
# 1,000 sentences bring the student close to its teacher. Perplexity is roughly the number of tokens
# that the model cannot decide between, so lower is better.
#
# ## Use
#
# The student can be saved as a preset, like any other model.

# %%
model.student.save_to_preset("output/distillation")
student = bert_keras.MaskedLM.from_preset("output/distillation")
share = student.backbone.count_params() / teacher.backbone.count_params()
print(f"{student.backbone.num_layers} layers, {share:.0%} of the parameters")
print(student.fill_mask("This is a [MASK] film.", top_k=3))

# %%
plots.learning_curves(history, path="output/distillation/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# Take any `MaskedLM` as the teacher, choose which of its layers the student keeps, and train on
# texts from your domain. More text is better:
#
# ```python
# teacher = bert_keras.MaskedLM.from_preset("bert_base_en_uncased")
# model = bert_keras.distill(teacher, student=(0, 2, 4, 7, 9, 11))
# ```
