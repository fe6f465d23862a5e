# %% [markdown]
# # A head of your own on a backbone
#
# The backbone is a Keras model like any other: you can put any layers on its outputs.
#
# ```shell
# python examples/custom_head.py
# ```
#
# Expected: accuracy 0.890 ± 0.010 on 600 sentences (chance is 0.5); PyTorch, three seeds, one
# minute of one core each.

# %%
import argparse
import sys

import keras
from keras import layers, ops

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--epochs", type=int, default=2, help="passes over the training set")
parser.add_argument("--output_dir", default="output/custom_head", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
train, dev = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")

# %% [markdown]
# Any task has the checkpoint's backbone and its preprocessor, which turns texts into the dict of
# arrays that the backbone takes.

# %%
keras.utils.set_random_seed(0)
task = bert_keras.TextEmbedder.from_preset(flags.preset, max_length=48)
backbone, preprocessor = task.backbone, task.preprocessor
backbone.trainable = False

inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in backbone.input_names}
tokens = backbone(inputs)["sequence_output"]
mask = ops.cast(inputs["padding_mask"], "float32")[..., None]
mean = ops.sum(tokens * mask, axis=1) / ops.sum(mask, axis=1)
highest = ops.max(tokens - 1e4 * (1 - mask), axis=1)
x = layers.Dropout(0.2)(layers.Concatenate()([mean, highest]))
x = layers.Dense(128, activation="gelu")(x)
model = keras.Model(inputs, layers.Dense(2)(x))

# %%
model.compile(
    keras.optimizers.Adam(1e-3),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(
    preprocessor(train.texts),
    train.labels,
    epochs=flags.epochs,
    validation_data=(preprocessor(dev.texts), dev.labels),
    verbose=2,
)
print(f"accuracy {history.history['val_accuracy'][-1]:.3f} on {len(dev.texts)} sentences")

# %%
model.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
logits = loaded.predict(preprocessor(["I would see it again.", "Never again."]), verbose=0)
print([dev.label_names[number] for number in logits.argmax(axis=-1)])

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
