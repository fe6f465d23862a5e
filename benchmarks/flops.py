"""The arithmetic of a BERT: multiplications and additions of its matrix products.

A weight of a dense layer takes 2 for each token that passes it, and attention 4 a unit of width for
each token that a token sees. Backwards each product is done twice, for its inputs and for its
weights, so that a training step takes three times the forward pass.
"""

VOCABULARY_SIZE = 30522


def forward(sizes, batch, length, decoded=0, pooled=False, first_token_only=False):
    """Returns the arithmetic of one forward pass.

    Args:
        sizes: dict by transformers' names: `num_hidden_layers`, `hidden_size`, `intermediate_size`
            (4 times as wide without it), `vocab_size`; and `gated`, whether a third product gates
            the feed-forward, `context`, how many tokens a token sees in the mean (all without it).
        batch: int, rows.
        length: int, tokens of a row.
        decoded: int, tokens of all rows that are guessed: a dense layer, and the vocabulary.
        pooled: bool, whether there are a pooler and two logits a row.
        first_token_only: bool, whether the last layer computes the first token only, and keys and
            values of all.
    """
    width = sizes["hidden_size"]
    inner = sizes.get("intermediate_size", 4 * width)
    keys_and_values = 4 * width**2
    rest = 2 * (2 * width**2 + (3 if sizes.get("gated") else 2) * width * inner)
    rest += 4 * sizes.get("context", length) * width
    head = 2 * width * (width + sizes.get("vocab_size", VOCABULARY_SIZE))
    pooler = 2 * width * (width + 2) if pooled else 0
    layers = sizes["num_hidden_layers"] * batch * length * (keys_and_values + rest)
    skipped = batch * (length - 1) * rest if first_token_only else 0
    return layers - skipped + decoded * head + batch * pooler
