# %% [markdown]
# # Answer questions with a span of a text
#
# Fine-tune a checkpoint to find the answer to a question in a paragraph from Wikipedia.
#
# ```shell
# python examples/question_answering.py
# ```
#
# Expected: exact match 6.5 and 16.1, F1 13.7 and 25.4 on 124 questions, after training on only 300;
# PyTorch, two runs, four and a half minutes of a busy core each. Trained on 6,000 questions of the
# full data set with windows of 192 tokens, the scores are 49.8 and 62.1.

# %%
import os

import keras

import bert_keras
from bert_keras import datasets, metrics, plots, training

# %% [markdown]
# ## Data
#
# Each example is a question, a paragraph, and the position of the answer in the paragraph.

# %%
train = datasets.read_squad("examples/data/squad/train-v1.1.json").examples[:300]
dev = datasets.read_squad("examples/data/squad/dev-v1.1.json").examples
print(train[0].question)
print(train[0].context)
print(train[0].answers)

# %% [markdown]
# ## Model
#
# The head scores each token as the start and as the end of the answer. If a question and its
# paragraph have more than 96 tokens, they are read in windows, one every 32 tokens. With so few
# training questions, short windows are easier to learn from; with many, 384 tokens are common.

# %%
keras.utils.set_random_seed(0)
reader = bert_keras.QuestionAnswering.from_preset("minilm_l6_en_uncased", max_length=96, stride=32)

# %% [markdown]
# ## Measure
#
# Exact match is the share of answers that equal a reference answer; F1 gives credit for words in
# common. Both ignore case, punctuation and articles, as SQuAD's official script does.


# %%
def scores(reader):
    predictions = reader.answer([e.question for e in dev], [e.context for e in dev])
    answers = {e.id: [answer.text for answer in e.answers] for e in dev}
    predicted = {e.id: answer["answer"] for e, answer in zip(dev, predictions, strict=True)}
    return metrics.squad_v1_scores(answers, predicted)


# %% [markdown]
# ## Train
#
# After each epoch, the callback answers the dev questions to plot the curves below. It does not
# influence training.

# %%
reader.compile(learning_rate=3e-4)
each_epoch = training.BestOnMetric(scores, name="f1", restore_best_weights=False)
history = reader.fit(train, batch_size=16, epochs=2, callbacks=[each_epoch], verbose=2)

# %% [markdown]
# ## Use

# %%
os.makedirs("output", exist_ok=True)
reader.save("output/question_answering.keras")
loaded = keras.models.load_model("output/question_answering.keras")
context = "Ada Lovelace, the daughter of Lord Byron, lived in London until 1852."
answer = loaded.answer("Where did Ada Lovelace live?", context)
print(answer)

# %% [markdown]
# `start` and `end` are character positions in the paragraph, so that you can highlight the answer:

# %%
plots.answer(context, answer)

# %%
plots.learning_curves(history, path="output/question_answering/learning_curves.png")

# %% [markdown]
# ## With your own data
#
# `read_squad` reads SQuAD's format, rows of `datasets`, and tables with the columns `question`,
# `context`, `answer_text` and `answer_start`. An answer is a text and the position of its first
# character:
#
# ```python
# question = "Where did Ada Lovelace live?"
# reader.fit(([question], [context]), [("London", context.index("London"))])
# ```
#
# From the command line:
#
# ```shell
# bert-keras train question_answering --train_file train-v1.1.json --dev_file dev-v1.1.json
# ```
