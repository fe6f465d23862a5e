# %% [markdown]
# # A family of your own
#
# A backbone that is in no paper yet, and every task on it.
#
# ```shell
# python docs/guides/a_family_of_your_own.py
# ```
#
# A family is one class: embeddings, blocks, perhaps a pooler. Its base class finds all that tasks, raw
# text, freezing, rates by layer, LoRA, `.keras` files and presets need. Here the attention and the
# feed-forward network of a block read the same input, as in GPT-J and PaLM, so that a device can
# compute both at once.
#
# ![A block of BERT, whose parts follow one another](../en/figures/encoder_block.svg)

# %%
import os
import tempfile

import keras
import numpy as np

import bert_keras
from bert_keras import layers
from bert_keras.models.backbone import Backbone
from bert_keras.models.bert import bert_block, bert_embeddings

# %% [markdown]
# ## The block
#
# A block is handed its parts: an attention, a feed-forward network and two norms. Their `adaptable`
# names the dense layers that can have LoRA adapters. Here only the order of the parts differs.


# %%
@keras.saving.register_keras_serializable(package="guide")
class ParallelBlock(layers.EncoderBlock):
    """`output = LayerNorm(x + Attention(LayerNorm(x)) + FeedForward(LayerNorm(x)))`."""

    def call(self, hidden_states, attention_mask=None, return_attentions=False, training=None):
        x = self.attention_norm(hidden_states)
        attended, attentions = self.attention(
            x,
            attention_mask=attention_mask,
            return_attentions=return_attentions,
            training=training,
        )
        added = self.dropout(attended + self.feed_forward(x), training=training)
        return self.feed_forward_norm(hidden_states + added), attentions


# %% [markdown]
# ## The backbone
#
# The base class keeps each argument of the constructor as an attribute, checks it, and returns it in
# the config. What the family has no argument for is an attribute of the class. `bert_embeddings` and
# `bert_block` make BERT's parts with the backbone's sizes and rates. All weights are created when the
# constructor has ended.
#
# The parts that other families use:
#
# | to have | use |
# |---|---|
# | rotary positions | `RotaryAttention` in `layers/rotary_attention.py`, `bert_embeddings(self, has_positions=False)` |
# | a gated feed-forward network | `GatedFeedForward` |
# | norms before attention and feed-forward network | `EncoderBlock(..., norm_first=True)`, `Encoder(..., norm=LayerNorm(...))` |
# | norms without an offset | `LayerNorm(center=False)`, `bert_embeddings(self, center=False)` |
# | a bias of the scores that all blocks share | `Encoder(..., shared=[layer])` |
#
# `models/modernbert.py` and `models/mpnet.py` use them all. RMSNorm, grouped-query attention and
# embeddings without a norm are not among them.


# %%
@keras.saving.register_keras_serializable(package="guide")
class ParallelBackbone(Backbone):
    """BERT's embeddings and parallel blocks, without segments or a pooler."""

    num_segments = 0

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        dropout=0.1,
        attention_dropout=None,
        activation="gelu",
        layer_norm_epsilon=1e-6,
        max_sequence_length=512,
        initializer_range=0.02,
        remat=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.embeddings = bert_embeddings(self)
        blocks = [bert_block(self, f"layer_{i}", ParallelBlock) for i in range(num_layers)]
        self.encoder = layers.Encoder(blocks, remat=remat, dtype=self.dtype_policy, name="encoder")


# %% [markdown]
# ## Every task works
#
# A classifier with its own vocabulary and rates by layer, saved and loaded again; a language model on
# the same class; adapters.

# %%
if __name__ == "__main__":
    keras.utils.set_random_seed(0)
    texts = ["Never again.", "It broke.", "I like it.", "Best I ever had."] * 25
    labels = [0, 0, 1, 1] * 25
    tokenizer = bert_keras.WordPieceTokenizer(bert_keras.train_wordpiece(texts=texts))
    sizes = {"num_layers": 2, "num_heads": 2, "hidden_dim": 32, "intermediate_dim": 64}
    backbone = ParallelBackbone(tokenizer.vocabulary_size, **sizes)
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=16)
    classifier = bert_keras.TextClassifier(
        backbone, preprocessor=preprocessor, label_names=["bad", "good"], pooling="mean"
    )
    classifier.compile(learning_rate=3e-3, layerwise_lr_decay=0.9)
    classifier.fit(texts, labels, epochs=3, verbose=2)

    with tempfile.TemporaryDirectory() as folder:
        classifier.save(os.path.join(folder, "parallel.keras"))
        restored = keras.models.load_model(os.path.join(folder, "parallel.keras"))
        backbone.save_to_preset(os.path.join(folder, "preset"))
        loaded = ParallelBackbone.from_preset(os.path.join(folder, "preset"))
    same = np.abs(restored.predict(texts[:4], verbose=0) - classifier.predict(texts[:4], verbose=0))
    print("after saving:", restored.classify("I like it."), "difference", same.max())
    print("stages from the bottom:", [stage.name for stage in loaded.stages])

    model = bert_keras.MaskedLM(loaded, preprocessor=preprocessor)
    print("a guess of a model that has learned nothing:", model.fill_mask("I [MASK] it.", top_k=1))
    loaded.add_adapters(rank=4)
    trained = sum(int(np.prod(weight.shape)) for weight in loaded.trainable_weights)
    print(f"LoRA trains {trained:,} of {loaded.count_params():,} weights")

# %% [markdown]
# ## Checkpoints of other libraries
#
# To read a checkpoint of transformers, a family needs a record: the names of our arguments in its
# config, and the names of its tensors, row by row, with `{i}` for the number of a layer. The same
# record writes checkpoints. This is all of DistilBERT's, except for its heads:

# %%
from bert_keras.presets.families import distilbert_record as distilbert

for theirs, ours in distilbert.HUGGING_FACE.config.items():
    print(f"{theirs:26}{ours}")
for ours, theirs, kind, *_ in distilbert.HUGGING_FACE.rows:
    print(f"{ours:46}{theirs:44}{kind}")

# %% [markdown]
# In the package, a family takes four steps: the class, `models/NAME.py`; the record,
# `presets/families/NAME_record.py`, which the tuple in that folder's `__init__.py` lists; the name of
# the class in `bert_keras/__init__.py`; and a test, `tests/models/test_NAME.py`.
# `WRITE_GOLDEN=1 pytest tests/models/test_NAME.py` writes `tests/golden/NAME_backbone.json`, the names
# of its weights. The shared tests then compare every head with transformers, reading and writing; in `tests/presets/test_families.py` each new argument needs
# a value in `odd_sizes`, and a new kind of tokenizer an entry in `TOKENIZERS_OF`. A row in
# `docs/family_pages.py` and a page in each language put it on the site.
