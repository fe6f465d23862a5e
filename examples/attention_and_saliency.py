# %% [markdown]
# # What a model attends to, and what its prediction depends on
#
# Attention shows which tokens each vector is computed from. Integrated gradients show which tokens
# change the prediction. The two differ: an attention map alone does not explain a prediction.
#
# ```shell
# python examples/attention_and_saliency.py
# ```
#
# Expected: accuracy 0.900 ± 0.010 on 600 sentences, and scores whose sum differs from a logit by at
# most 0.003; PyTorch, three seeds, 20 seconds of one core each.

# %%
import pathlib

import keras

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## A classifier to explain
#
# Trained as in [text classification](text_classification.py), on every sixth sentence.

# %%
keras.utils.set_random_seed(0)
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
train = train.take(range(0, len(train), 6))
classifier = bert_keras.TextClassifier.from_preset(
    "minilm_l6_en_uncased", label_names=train.label_names, pooling="mean", max_length=48
)
classifier.compile(learning_rate=2e-4)
classifier.fit(train.texts, train.labels, epochs=1, verbose=2)
print(classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True))

# %% [markdown]
# ## Attention
#
# One map per layer, averaged over its heads. Each row is a query token, and each column a token
# that it attends to.

# %%
text = "The food was cold, but the staff were lovely."
plots.attention(classifier, text, path="output/attention_and_saliency/layers.png")

# %% [markdown]
# The heads of the last layer, one map each:

# %%
plots.attention(classifier, text, layer=-1, path="output/attention_and_saliency/heads.png")

# %% [markdown]
# ## Saliency
#
# Integrated gradients assign each token a score. The scores of a text add up to the difference
# between its logit and that of the same text with every token masked. The remainder, `error`, comes
# from approximating the integral by a sum.

# %%
answers = bert_keras.integrated_gradients(classifier, [text, "I would not go back.", "Great!"])
for a in answers:
    print(a.target, f"{a.logit - a.baseline_logit:.3f} = {a.scores.sum():.3f}", a.error)
view = plots.saliency(answers)  # A notebook shows it.
pathlib.Path("output/attention_and_saliency/saliency.html").write_text(view, encoding="utf-8")

# %% [markdown]
# ## Find wrong labels
#
# If a text's words contradict its human label, the label may be wrong. These three texts contradict
# theirs most:

# %%
few = dev.take(range(16))
against = bert_keras.integrated_gradients(
    classifier, few.texts, target=[dev.label_names[label] for label in few.labels]
)
worst = sorted(range(len(few)), key=lambda row: against[row].logit)[:3]
for row in worst:
    print(dev.label_names[few.labels[row]], "?", few.texts[row])

# %% [markdown]
# ## With your own data
#
# Load your classifier with `keras.models.load_model` and pass your texts. `target` is the label to
# explain; by default it is the predicted one.
