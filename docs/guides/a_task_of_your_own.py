# %% [markdown]
# # A task of your own
#
# Grades, which are classes with an order.
#
# ```shell
# python docs/guides/a_task_of_your_own.py
# ```
#
# A task is a backbone, a head, and what only you can define: the labels, the loss, and how an answer
# reads. `bert_keras.Task` brings the rest: raw text in, batches by length, BERT's recipe, `.keras`
# files, presets, exported folders, the server and the model card.
#
# Here a review has a grade from 1 to 5. For each grade except the last, the head predicts whether
# the review is above it, so that an error of one grade costs less than one of four (Cao et al.,
# 2020, https://arxiv.org/abs/1901.07884, with a weight for each threshold).
#
# Two classes describe it:
#
# - The **task** trains. It makes the head, and defines labels, loss and metrics.
# - The **answerer** turns the outputs for some texts into answers. It knows the task only by
#   `settings`, plain data: the attributes of the task that its `setting_names` lists. It uses
#   NumPy alone. The task calls it with `predict`, an exported folder with ONNX Runtime, the server
#   with its batches.
#
# An answerer also says which fields a row has, and which options the answer takes: Python, the
# server and the exported folder check the same bounds. Its `answers` gets the outputs of all texts
# as one array. Each text becomes one row of token ids; an answerer whose texts do not, for instance
# because it cuts them into windows, overrides `encode(texts)`, which returns `Rows`, and `answer`.
#
# If the model returns a value for each token, the arrays also hold padding, and batches differ in
# length: override `answer(rows, batches, texts)`, whose `batches` yields the indices of rows and
# their outputs, and keep the first `rows.lengths[index]` values of each row. Such a task
#
# - has the attribute `label_per_token = True`, so that padding does not count in the loss;
# - names the kind of its labels, such as
#   `label_kind = LabelKind("scores", per_token=True)` of `bert_keras.metrics.label_kinds`. Without
#   it, a metric of Keras is a mean over padded lengths, which depends on the batch size;
# - takes lists of words as texts if `form = "sentences"`;
# - returns its labels from `encode_labels` as a `Ragged` (`bert_keras.preprocessing.ragged`). If they
#   must be aligned with the texts, as a label for each word must, let the answerer's `encode` return
#   a subclass of `Rows`, such as `WordRows` of `bert_keras.preprocessing.word_windows`, whose
#   `labelled(labels, sample_weight)` aligns them.
#
# A task that overrides `encode_texts` instead trains and saves, but is not exported as a folder.

# %%
import os
import tempfile

import keras
import numpy as np

import bert_keras
from bert_keras.answers.answerer import Answerer, Option


class GradeAnswerer(Answerer):
    """The grade of each text, at least as sure as `confidence`."""

    method, about, does = "grade", "Grade texts.", "grades texts"
    options = (Option("confidence", float, 0.5, "Probability from which a grade counts.", 0.0),)

    def answers(self, arrays):
        above = 1 / (1 + np.exp(-arrays)) >= self.confidence
        return [
            {"grade": 1 + int(count), "of": 1 + arrays.shape[1]} for count in above.sum(axis=-1)
        ]


# Registered, so that files can name the class. Each argument of the constructor is kept as an
# attribute of the same name, from which files are written.
@keras.saving.register_keras_serializable(package="guide")
class Grader(bert_keras.Task):
    """Gives texts a grade from 1 to `num_grades`."""

    answerers = (GradeAnswerer,)
    # A preset with another number of grades has another head.
    head_config_keys = ("num_grades",)

    def __init__(self, backbone, preprocessor=None, num_grades=5, **kwargs):
        super().__init__(backbone, preprocessor, **kwargs)
        self.num_grades = num_grades
        self.head = keras.layers.Dense(num_grades - 1, name="head")

    def call(self, inputs, training=None):
        outputs = self.backbone_outputs(inputs, training=training)
        return self.head(outputs["sequence_output"][:, 0])

    def default_loss(self, label_smoothing):
        return keras.losses.BinaryCrossentropy(
            from_logits=True, label_smoothing=label_smoothing, reduction="mean_with_sample_weight"
        )

    def default_metrics(self):
        return [keras.metrics.BinaryAccuracy(threshold=0.0, name="thresholds")]

    def encode_labels(self, labels):
        labels = np.asarray(labels)
        if not np.isin(labels, range(1, self.num_grades + 1)).all():
            raise ValueError(f"Grades are 1 to {self.num_grades}. Received: {np.unique(labels)}.")
        return (labels[:, None] > np.arange(1, self.num_grades)).astype("float32")

    def grade(self, texts, **options):
        return self.ask("grade", texts, **options)


# %% [markdown]
# `export` writes a folder that answers without Keras and without this package; it holds a copy of
# the answerer. `bert-keras serve` takes the `.keras` file or the folder, once the program has
# imported the classes: `python -c "import my_task; from bert_keras.cli.main import run; run()"`
# with the arguments of `bert-keras`. The task has no command of its own.

# %%
if __name__ == "__main__":
    texts = ["Never again.", "It broke.", "It works.", "I like it.", "Best I ever had."] * 20
    grades = [1, 2, 3, 4, 5] * 20
    grader = Grader.from_preset("bert_mini_en_gutenberg")
    grader.compile(learning_rate=2e-4)
    grader.fit(texts, grades, epochs=8, verbose=2)
    with tempfile.TemporaryDirectory() as folder:
        grader.save(os.path.join(folder, "grader.keras"))
        again = keras.models.load_model(os.path.join(folder, "grader.keras"))
    print(again.grade(texts[:5]))
    print(again.grade("It works.", confidence=0.9))
