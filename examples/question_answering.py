# %% [markdown]
# # Answer questions with a span of a text
#
# A checkpoint learns to mark the answer to a question in a paragraph of Wikipedia.
#
# ```shell
# python examples/question_answering.py
# python examples/question_answering.py --data_dir squad_v1 --num_train 100000
# ```
#
# Expected: exact match 9.7 and F1 18.3 on 124 questions, after training on only 500; PyTorch, one
# seed, two and a half minutes of one core.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import datasets, metrics, plots, training

parser = argparse.ArgumentParser()
parser.add_argument(
    "--data_dir",
    default="examples/data/squad",
    help="folder with train-v1.1.json and dev-v1.1.json",
)
parser.add_argument("--num_train", type=int, default=500, help="questions to train on")
parser.add_argument(
    "--preset", default="minilm_l6_en_uncased", help="name, folder or hf:// address"
)
parser.add_argument("--epochs", type=int, default=2, help="passes over the training set")
parser.add_argument("--output_dir", default="output/question_answering", help="output folder")
parser.add_argument(
    "--devices", type=int, help="devices that share a batch; PyTorch needs torchrun"
)
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)
if flags.devices:
    bert_keras.distribution.initialize(flags.devices)

# %% [markdown]
# Data: questions with their paragraphs, and the place of the answer in each.

# %%
train = datasets.read_squad(f"{flags.data_dir}/train-v1.1.json").examples[: flags.num_train]
dev = datasets.read_squad(f"{flags.data_dir}/dev-v1.1.json").examples
print(len(train), "to train on,", len(dev), "to measure on:", train[0].question, train[0].answers)

# %% [markdown]
# The head scores each token as the start and as the end of the answer. Longer paragraphs are read
# in overlapping windows. After each epoch the model also answers the dev questions, for the curves
# only; they do not influence training.


# %%
def scores(qa):
    predictions = qa.answer([e.question for e in dev], [e.context for e in dev])
    answers = {e.id: [answer.text for answer in e.answers] for e in dev}
    predicted = {e.id: answer["answer"] for e, answer in zip(dev, predictions, strict=True)}
    return metrics.squad_v1_scores(answers, predicted)


keras.utils.set_random_seed(0)
qa = bert_keras.QuestionAnswering.from_preset(flags.preset, max_length=192, stride=64)
qa.compile(learning_rate=3e-4)
each_epoch = training.BestOnMetric(scores, name="f1", restore_best_weights=False)
history = qa.fit(train, batch_size=16, epochs=flags.epochs, callbacks=[each_epoch], verbose=2)

# %% [markdown]
# Exact match and F1, as computed by SQuAD's official script.

# %%
print(scores(qa))
qa.save(f"{flags.output_dir}.keras")
loaded = keras.models.load_model(f"{flags.output_dir}.keras")
context = "Ada Lovelace, the daughter of Lord Byron, lived in London until 1852."
answer = loaded.answer("Where did Ada Lovelace live?", context)
print(answer)

# %%
plots.answer(context, answer)

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
