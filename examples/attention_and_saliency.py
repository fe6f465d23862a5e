# %% [markdown]
# # What a model looks at, and what its answer depends on
#
# Attention shows where each vector comes from; integrated gradients show which tokens change the
# answer. These differ: an attention map alone does not explain a decision.
#
# ```shell
# python examples/attention_and_saliency.py
# ```
#
# Expected: accuracy 0.900 ± 0.010 on 600 sentences, and scores whose sum differs from a logit by at
# most 0.003; PyTorch, three seeds, 20 seconds of one core each.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--num_train", type=int, default=400, help="sentences to train on")
parser.add_argument("--output_dir", default="output/attention_and_saliency", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
keras.utils.set_random_seed(0)
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
train = train.take(range(0, len(train), len(train) // flags.num_train))
classifier = bert_keras.TextClassifier.from_preset(
    flags.preset, label_names=train.label_names, pooling="mean", max_length=48
)
classifier.compile(learning_rate=2e-4)
classifier.fit(train.texts, train.labels, epochs=1, verbose=2)
print(classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True))

# %% [markdown]
# First each layer, averaged over its heads; then the heads of the last layer.

# %%
text = "The food was cold, but the staff were lovely."
plots.attention(classifier, text, path=f"{flags.output_dir}/layers.png")

# %%
plots.attention(classifier, text, layer=-1, path=f"{flags.output_dir}/heads.png")

# %% [markdown]
# The scores of a text add up to the difference between its logit and that of a text of masks. The
# rest is the error of the integral, which is a sum over points of the path.

# %%
answers = bert_keras.integrated_gradients(classifier, [text, "I would not go back.", "Great!"])
for a in answers:
    print(a.target, f"{a.logit - a.baseline_logit:.3f} = {a.scores.sum():.3f}", a.error)
plots.saliency(answers, path=f"{flags.output_dir}/saliency.png")

# %% [markdown]
# A use for this: texts whose words speak against the label that people assigned are the place to
# look for wrong labels.

# %%
few = dev.take(range(16))
against = bert_keras.integrated_gradients(
    classifier, few.texts, target=[dev.label_names[label] for label in few.labels]
)
worst = sorted(range(len(few)), key=lambda row: against[row].logit)[:3]
for row in worst:
    print(dev.label_names[few.labels[row]], "?", few.texts[row])
