# %% [markdown]
# # Pre-train a BERT, from raw text to a preset
#
# The whole way on two books: a vocabulary, examples of masked tokens and next sentences, a model.
# `bert-keras pretrain` can also resume a killed run; docs/pretraining.md shows it at full size.
#
# ```shell
# python examples/pretraining.py
# python examples/pretraining.py --text 'books/*.txt' --num_steps 100000
# ```
#
# Expected: in training, the perplexity of masked tokens falls from 827 ± 9 to 419 ± 1, and the
# model predicts frequent tokens, since so few steps teach it little else; PyTorch, three seeds, 23
# seconds of one core each.

# %%
import argparse
import glob
import sys

import keras

import bert_keras
from bert_keras import corpora, plots
from bert_keras.preprocessing import Masking

parser = argparse.ArgumentParser()
parser.add_argument("--text", default="examples/data/books/*.txt.gz", help="text files, a pattern")
parser.add_argument("--num_steps", type=int, default=200, help="batches of 32")
parser.add_argument("--output_dir", default="output/pretraining", help="output folder")
flags = parser.parse_args([] if "ipykernel" in sys.modules else None)

# %% [markdown]
# The vocabulary: word pieces that are frequent in this text.

# %%
files = sorted(glob.glob(flags.text))
texts = [passage for book in corpora.read_documents(files) for passage in book]
vocabulary = bert_keras.train_wordpiece(texts=texts, vocabulary_size=2000)
tokenizer = bert_keras.WordPieceTokenizer(vocabulary)
print(tokenizer.tokenize("Alice was beginning to get very tired."))

# %% [markdown]
# Examples: two texts of up to 64 tokens together, where the second follows the first or is random.

# %%
corpora.create_pretraining_data(
    files, tokenizer, f"{flags.output_dir}/data", sequence_length=64, documents="file", duplicates=2
)
batches = corpora.PretrainingBatches(f"{flags.output_dir}/data", batch_size=32, masking=Masking())

# %%
keras.utils.set_random_seed(0)
backbone = bert_keras.BertBackbone(
    tokenizer.vocabulary_size,
    num_layers=2,
    num_heads=4,
    hidden_dim=128,
    intermediate_dim=512,
    max_sequence_length=64,
)
preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=64)
model = bert_keras.Pretraining(backbone, preprocessor=preprocessor)
model.compile(learning_rate=1e-3)
history = model.fit(
    batches, steps_per_epoch=flags.num_steps // 4, epochs=4, shuffle=False, verbose=2
)

# %% [markdown]
# Any task can be fine-tuned from the preset.

# %%
model.save_to_preset(f"{flags.output_dir}/preset")
loaded = bert_keras.MaskedLM.from_preset(f"{flags.output_dir}/preset")
print(loaded.fill_mask("said the [MASK] to alice.", top_k=3))

# %%
plots.learning_curves(history, path=f"{flags.output_dir}/learning_curves.png")
