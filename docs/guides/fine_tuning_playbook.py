# %% [markdown]
# # The fine-tuning playbook
#
# What to try on a small data set, and in which order. Run it from the root of the repository:
#
# ```shell
# python docs/guides/fine_tuning_playbook.py
# ```
#
# It trains on a slice of the review sentences in examples/data, and prints the effect of each tool.
# The method is to change one thing at a time, and to measure.
#
# On so little data, most differences below are noise; section 2 shows how large the noise is. The
# numbers for MRPC and WNUT-17 were measured with a thousand examples and three seeds. Each tool alone was
# compared with the plain recipe: docs/fine_tuning_ablations.md has the table, with time and memory.
#
# The environment variables PRESET, NUM_TRAIN and NUM_DEV set another checkpoint and other sizes;
# KERAS_BACKEND chooses TensorFlow, JAX or PyTorch, which give the same numbers except for rounding
# and dropout.

# %%
import os
import tempfile
import time

import keras
import numpy as np
import sklearn.metrics
from sklearn.linear_model import LogisticRegression

import bert_keras
from bert_keras import datasets
from bert_keras.training import BestOnMetric

PRESET = os.environ.get("PRESET", "minilm_l6_en_uncased")
NUM_TRAIN = int(os.environ.get("NUM_TRAIN", "96"))
NUM_DEV = int(os.environ.get("NUM_DEV", "100"))


everything, held_out = datasets.load_sentiment_sentences(
    "examples/data/sentiment_labelled_sentences"
)
train = everything.take(range(NUM_TRAIN))
dev = held_out.take(range(NUM_DEV))

# %% [markdown]
# Everything below uses this function: a checkpoint, `compile`, `fit`, and the same measure for all.
# The head reads the mean of the token vectors, since the checkpoint was trained with it; `from_preset`
# would choose it too. With the paper's checkpoints a new head reads the pooler.

# %%
accuracies, plain_accuracies = [], []


def fine_tune(
    name,
    source=PRESET,
    options=None,
    seed=0,
    fit=None,
    task=bert_keras.TextClassifier,
    **compile_arguments,
):
    """Trains a classifier, prints how it did next to the plain recipe, and returns it."""
    keras.utils.set_random_seed(seed)
    classifier = task.from_preset(
        source, label_names=train.label_names, **{"pooling": "mean", **(options or {})}
    )
    classifier.compile(**{"learning_rate": 1e-4, **compile_arguments})
    started = time.perf_counter()
    classifier.fit(
        train.texts, train.labels, **{"batch_size": 16, "epochs": 3, "verbose": 0, **(fit or {})}
    )
    seconds = time.perf_counter() - started
    scores = classifier.evaluate(dev.texts, dev.labels, verbose=0, return_dict=True)
    accuracy = scores["accuracy"]
    accuracies.append(accuracy)
    gain = f" ({accuracy - np.mean(plain_accuracies):+.3f})" if plain_accuracies else ""
    print(f"{name:30} accuracy {accuracy:.3f}{gain}, trained in {seconds:.1f} s", flush=True)
    return classifier


# %% [markdown]
# ## 1. Before anything else: what is easy?
#
# A number needs a simpler one to compare with. The most frequent class costs nothing. A linear
# classifier on the vectors of the frozen encoder costs seconds, since the encoder reads each text
# only once.
#
# If this is good enough, stop here: it trains on a laptop. With a frozen encoder MRPC reaches 0.70,
# 0.75 fine-tuned, and 0.68 with its most frequent class; WNUT-17 reaches 0.26, and 0.48 fine-tuned.

# %%
print("\n1. What is easy")
majority = np.bincount(train.labels).argmax()
print(f"{'the most frequent class':30} accuracy {np.mean(dev.labels == majority):.3f}")
embedder = bert_keras.TextEmbedder.from_preset(PRESET)
linear = LogisticRegression(max_iter=1000).fit(embedder.embed(train.texts), train.labels)
accuracy = linear.score(embedder.embed(dev.texts), dev.labels)
print(f"{'linear on frozen vectors':30} accuracy {accuracy:.3f}")

# %% [markdown]
# ## 2. The plain recipe, and how much of a result is chance
#
# `compile()` without arguments is BERT's recipe: AdamW, weight decay on kernels only, gradients
# clipped, the rate rising over a tenth of the steps and falling to 0. On a small set two seeds may
# differ more than two tools. So run the plain recipe first, with several seeds. A single run below
# that lies within this spread shows nothing, and the size of the dev set limits how well even the
# mean is known.

# %%
print("\n2. The plain recipe")
plain = [fine_tune(f"plain, seed {seed}", seed=seed) for seed in range(3)]
plain_accuracies.extend(accuracies[-3:])
mean, deviation = np.mean(plain_accuracies), np.std(plain_accuracies, ddof=1)
error = np.sqrt(mean * (1 - mean) / len(dev))
print(f"mean {mean:.3f}, standard deviation over seeds {deviation:.3f}")
print(f"standard error of an accuracy on {len(dev)} examples {error:.3f}")

# %% [markdown]
# ## 3. Rate, batch size, epochs
#
# These three matter more than any tool below. The paper tries 5e-5, 3e-5 and 2e-5, batches of 16
# and 32, and 2 to 4 epochs, and takes the best on the dev set; small models and small sets often
# need more. `bert-keras train` runs this grid, or your own, and continues where it was stopped.
#
# The best epoch needs no search: after each epoch, `BestOnMetric` measures whatever number you care
# about (entity F1, Matthews correlation; here the F1 of a class), and training ends with the best
# weights. With `path="best.keras"` they are saved as soon as they are found. The dev set has then
# been used to choose, so report results on another one.


# %%
def f1(model):
    chosen = model.predict(dev.texts, verbose=0).argmax(-1)
    return sklearn.metrics.f1_score(dev.labels, chosen)


print("\n3. Rate and epochs")
best = BestOnMetric(f1, name="f1", patience=2)
fine_tune("up to 4 epochs, the best kept", fit={"epochs": 4, "callbacks": [best]})
print(f"The best F1, {best.best:.3f}, came in epoch {best.best_epoch + 1}.")

# %% [markdown]
# The shape of the schedule matters less, as long as there is one. A constant rate is for runs whose
# end is not known; without a warm-up the first steps are large although Adam's moments are not yet
# reliable. Without both, MRPC lost 0.018 and WNUT-17 0.118. With `lr_schedule="cosine"`, MRPC gained 0.009
# and WNUT-17 lost 0.015.

# %%
fine_tune("constant, no warm-up", lr_schedule="constant", warmup=0)

# %% [markdown]
# ## 4. Change less of what the checkpoint knows
#
# The lower layers know the language, the upper ones the previous task. With few examples, let the
# lower layers move less. The gentlest way comes first: rates that fall towards the lower layers, and
# a faster head, which starts from nothing. Freezing the lower layers also saves time.
#
# On MRPC and WNUT-17, rates by layer and a faster head were within the noise of the plain recipe.
# Freezing the embeddings and half of the layers lost 0.037 on MRPC, in 0.6 of the time. Frozen
# embeddings made no measurable difference, in 0.8 to 0.9 of the time.

# %%
print("\n4. Change less")
fine_tune("decay 0.9 a layer, head x 10", layerwise_lr_decay=0.9, head_lr_multiplier=10.0)
fine_tune("first 3 layers frozen", options={"frozen": 3})

# %% [markdown]
# ## 5. Be less certain than the labels
#
# Label smoothing keeps the model from being too certain: try it if labels are noisy. Averaging the weights over the last steps smooths the end of a run; the momentum must fit the number
# of steps: 0.9 averages about ten of them.
#
# Class weights and the focal loss are for classes of very different size, which these are not:
# `fit(class_weight={0: 1.0, 1: 5.0})`,
# `compile(loss=keras.losses.CategoricalFocalCrossentropy(from_logits=True))`. They shift the balance
# of precision and recall, so look at both.
#
# On MRPC and WNUT-17, the gains of all of these were within the noise. A CRF,
# `TokenClassifier(crf=True)`, did not help either. Nor did R-Drop, which reads each batch twice and
# trains both passes to agree, nor several dropout masks in the head, so the package has neither.

# %%
print("\n5. Regularise")
fine_tune("label smoothing 0.1", label_smoothing=0.1)
fine_tune("averaged weights", ema_momentum=0.9)

# %% [markdown]
# ## 6. Texts without labels
#
# There are often many more texts than labels. Predicting their masked words for a few epochs adapts
# the checkpoint to them, and the result is a preset like any other. It helps if the texts differ from
# those that the checkpoint was trained on; two hundred texts, as here, are too few to expect much.
# This checkpoint was made for embeddings, so its head for masked words starts at random: with a
# thousand texts, MRPC lost 0.048 and WNUT-17 0.058.

# %%
print("\n6. Texts without labels")
keras.utils.set_random_seed(0)
language_model = bert_keras.MaskedLM.from_preset(PRESET)
language_model.compile(learning_rate=1e-4)
language_model.fit(everything.texts[: 2 * NUM_TRAIN], epochs=1, verbose=0)
with tempfile.TemporaryDirectory() as folder:
    language_model.save_to_preset(folder)
    fine_tune("adapted to the texts first", source=folder)

# %% [markdown]
# ## 7. Many tasks, one checkpoint: LoRA
#
# LoRA adds two small matrices to each kernel and trains nothing else in the encoder. All tasks then
# share one large checkpoint, each has a small file with its adapters and head, and the optimizer keeps
# moments for these only. LoRA needs a rate about ten times as high, and many steps. With few, as
# here, it falls behind: in three epochs of a thousand examples at five times the plain rate, MRPC
# lost 0.056 and WNUT-17 0.057, in 0.65 of the time. `merge_lora` turns it back into a plain model.

# %%
print("\n7. LoRA")
adapted = fine_tune("LoRA, rank 8", options={"lora_rank": 8}, learning_rate=1e-3)
with tempfile.TemporaryDirectory() as folder:
    adapted.save_adapters(os.path.join(folder, "adapters.safetensors"))
    size = os.path.getsize(os.path.join(folder, "adapters.safetensors"))
weights = sum(int(np.prod(weight.shape)) for weight in adapted.weights)
print(f"The adapters' file holds {size / 1e6:.2f} MB, all weights {4 * weights / 1e6:.0f} MB.")

# %% [markdown]
# ## 8. When memory runs out
#
# These do not improve the model; they make training possible. Gradient accumulation makes one update
# from several smaller batches. `remat` discards what is inside the layers and computes it again in the
# backward pass: with 12 layers, 256 wide, and 16 rows of 256 tokens
# (`git show 9055522:benchmarks/remat_memory.py`) what a step keeps shrinks to 49 % on PyTorch in 1.37 times the time, and to 35 % on TensorFlow in 1.25 times;
# on JAX's CPU compiler not at all. `dtype="mixed_bfloat16"` halves the activations and is fast
# on hardware made for it; on hardware that only has float16, `"mixed_float16"` also scales the loss.
# Each should give the result of the plain recipe; if not, something is wrong. On MRPC and WNUT-17,
# float32 took 1.4 to 1.55 times as long as bfloat16, with results within the noise.
#
# Conversely, if there is memory for batches of thousands, `compile(optimizer="lamb")` learns from
# them at rates that grow with the square root of the batch size. It is not meant for small batches.

# %%
print("\n8. Memory")
fine_tune("2 batches of 8 an update", fit={"batch_size": 8}, gradient_accumulation_steps=2)
fine_tune("remat", options={"backbone": {"remat": True}})

# %% [markdown]
# ## 9. Look at the mistakes
#
# Reading ten wrong answers slowly teaches more than another tool: wrong labels, a kind of text that
# is missing, a word that misleads the model. Integrated gradients show which words an answer depends
# on; `bert_keras.plots` draws them, attention maps and more.

# %%
print("\n9. Mistakes")
classifier = plain[0]
chosen = classifier.predict(dev.texts, verbose=0).argmax(-1)
wrong = np.flatnonzero(chosen != dev.labels)
print(sklearn.metrics.confusion_matrix(dev.labels, chosen), "rows are the true classes")
for answer in bert_keras.integrated_gradients(classifier, [dev.texts[row] for row in wrong[:3]]):
    order = np.argsort(-np.abs(answer.scores))[:3]
    words = ", ".join(f"{answer.tokens[place]} {answer.scores[place]:+.2f}" for place in order)
    print(f"taken for {answer.target}: {' '.join(answer.tokens[1:-1])}\n    {words}")

# %% [markdown]
# ## 10. Keep it
#
# The file holds the vocabulary and the names of the labels. A new process on any backend loads it
# with `import bert_keras, keras; keras.models.load_model("model.keras")`.

# %%
with tempfile.TemporaryDirectory() as folder:
    classifier.save(os.path.join(folder, "model.keras"))
    reloaded = keras.models.load_model(os.path.join(folder, "model.keras"))
print("\n10.", reloaded.classify("I would see it again."))
