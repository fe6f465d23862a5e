# %% [markdown]
# # Your own head on a backbone
#
# The backbone is an ordinary Keras model, so you can put any layers on its outputs.
#
# ```shell
# python examples/custom_head.py
# ```
#
# Expected: accuracy 0.890 ± 0.010 on 600 sentences (chance is 0.5); PyTorch, three seeds, one
# minute of one core each.

# %%
import os

import keras
from keras import layers, ops

import bert_keras
from bert_keras import datasets, plots

# %% [markdown]
# ## Data

# %%
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")

# %% [markdown]
# ## Backbone
#
# Every task contains the checkpoint's backbone, and a preprocessor that turns texts into the dict
# of arrays that the backbone takes. Here the backbone is frozen, so only the head is trained.

# %%
keras.utils.set_random_seed(0)
task = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", max_length=48)
backbone, preprocessor = task.backbone, task.preprocessor
backbone.trainable = False
print({name: array.shape for name, array in preprocessor(["Great!"]).items()})

# %% [markdown]
# ## Head
#
# The backbone returns a vector for each token. The head concatenates their mean and their maximum,
# ignoring padding, and adds two dense layers.

# %%
tokens = backbone.output["sequence_output"]
mask = ops.cast(backbone.input["padding_mask"], "float32")[..., None]
mean = ops.sum(tokens * mask, axis=1) / ops.sum(mask, axis=1)
highest = ops.max(tokens - 1e4 * (1 - mask), axis=1)
x = layers.Dropout(0.2)(layers.Concatenate()([mean, highest]))
x = layers.Dense(128, activation="gelu")(x)
model = keras.Model(backbone.input, layers.Dense(2)(x))

# %% [markdown]
# ## Train
#
# From here on, everything is plain Keras.

# %%
model.compile(
    keras.optimizers.Adam(1e-3),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(
    preprocessor(train.texts),
    train.labels,
    epochs=2,
    validation_data=(preprocessor(dev.texts), dev.labels),
    verbose=2,
)
print(f"accuracy {history.history['val_accuracy'][-1]:.3f} on {len(dev.texts)} sentences")

# %% [markdown]
# ## Use

# %%
os.makedirs("output", exist_ok=True)
model.save("output/custom_head.keras")
loaded = keras.models.load_model("output/custom_head.keras")
logits = loaded.predict(preprocessor(["A wonderful film, well acted.", "Never again."]), verbose=0)
print([dev.label_names[number] for number in logits.argmax(axis=-1)])

# %%
plots.learning_curves(history, path="output/custom_head/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# Replace the texts and labels, and set the width of the last layer to the number of classes. If
# your model should take raw text and load with `from_preset`, write
# [a task of your own](../docs/guides/a_task_of_your_own.py).
