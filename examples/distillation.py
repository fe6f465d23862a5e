# %% [markdown]
# # Distil a language model
#
# A student with two of the teacher's layers learns from the teacher's distribution over all tokens,
# from the masked tokens, and from the direction of the teacher's hidden states, as DistilBERT did.
#
# ```shell
# python examples/distillation.py
# python examples/distillation.py --train_file books.txt --heldout_file another.txt \
#     --num_train 1000000 --epochs 3
# ```
#
# Expected: a student with 71 % of the teacher's parameters has perplexity 259.1 before and 100.5 ±
# 1.3 after, where the teacher has 93.7; PyTorch, three seeds, 25 seconds of one core each.

# %%
import argparse
import sys

import keras

import bert_keras
from bert_keras import datasets, plots

parser = argparse.ArgumentParser()
parser.add_argument(
    "--preset", default="bert_mini_en_gutenberg", help="the teacher: name, folder or hf:// address"
)
parser.add_argument(
    "--train_file", default=None, help="one text per line; by default sentences of reviews"
)
parser.add_argument("--heldout_file", default=None, help="one text per line")
parser.add_argument("--num_train", type=int, default=1000, help="texts to train on")
parser.add_argument("--epochs", type=int, default=1, help="passes over the training set")
parser.add_argument("--output_dir", default="output/distillation", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %%
if flags.train_file:
    train, heldout = (
        list(datasets.read_table(path, [0], header=False)[0])
        for path in (flags.train_file, flags.heldout_file)
    )
else:
    splits = datasets.load_sentiment_sentences("examples/data/sentiment_labelled_sentences")
    train, heldout = (split.texts for split in splits)

# %% [markdown]
# The student starts with the teacher's embeddings, its head, and its first and third layer.

# %%
keras.utils.set_random_seed(0)
teacher = bert_keras.MaskedLM.from_preset(flags.preset)
model = bert_keras.distill(teacher, student=(0, 2))


def perplexity(language_model):
    scores = language_model.evaluate(heldout, verbose=0, return_dict=True)
    return round(scores["perplexity"], 1)


print("teacher", perplexity(teacher), "student before", perplexity(model.student))
model.compile(learning_rate=5e-4)
history = model.fit(train[: flags.num_train], epochs=flags.epochs, verbose=2)
print("student after", perplexity(model.student))

# %%
model.student.save_to_preset(flags.output_dir)
student = bert_keras.MaskedLM.from_preset(flags.output_dir)
share = student.backbone.count_params() / teacher.backbone.count_params()
print(f"{student.backbone.num_layers} layers, {share:.0%} of the parameters")
print(student.fill_mask("This is a [MASK] film.", top_k=3))

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
