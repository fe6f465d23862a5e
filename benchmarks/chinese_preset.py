"""The text, the vocabulary and the first weights of `modernbert_mini_zh_classics`.

    pip install opencc-python-reimplemented
    python benchmarks/chinese_preset.py --novels_dir chinese_classics \
        --bert_vocabulary bert-base-chinese-vocab.txt --output_dir zh

Writes `zh/train` and `zh/heldout` (the last tenth of each novel's chapters), `zh/vocab.txt`, and
`zh/start`, a ModernBERT whose token embeddings are factors of the counts of neighbouring characters
(Levy and Goldberg, 2014, https://papers.nips.cc/paper/5477) and whose output bias is each token's
log frequency. So the masked-token loss begins below the plateau of token frequencies, where a
random start spends most of a short run. The preset's card has the commands that follow.
"""

import collections
import gzip
import re
from pathlib import Path

import keras
import numpy as np
from absl import app, flags
from scipy import sparse

import bert_keras

FLAGS = flags.FLAGS
flags.DEFINE_string("novels_dir", None, "Folder of the novels, .txt.gz.", required=True)
flags.DEFINE_string("bert_vocabulary", None, "vocab.txt of BERT-base-Chinese.", required=True)
flags.DEFINE_string("output_dir", None, "Folder to write.", required=True)

ALSO_TRADITIONAL = ("honglou-meng", "sanguo-yanyi")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ALPHANUMERIC = [*"abcdefghijklmnopqrstuvwxyz0123456789"]
FULL_WIDTH = [*map(chr, (*range(0xFF10, 0xFF1A), *range(0xFF41, 0xFF5B)))]
CHAPTER = re.compile(r"第[一二三四五六七八九十百零〇○]+回[\s　]")
WIDTH, WINDOW, SEED = 256, 4, 1


def main(argv):
    output = Path(FLAGS.output_dir)
    tokens = vocabulary(write_text(output))
    (output / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    first_weights(output, bert_keras.WordPieceTokenizer(tokens))


def write_text(output):
    """Writes both parts of the novels; returns how often each character is trained on."""
    from opencc import OpenCC

    to_traditional, counts = OpenCC("s2t").convert, collections.Counter()
    for part in ("train", "heldout", "heldout_traditional"):
        (output / part).mkdir(parents=True, exist_ok=True)
    for path in sorted(Path(FLAGS.novels_dir).glob("*.txt.gz")):
        name, train, heldout = path.name.removesuffix(".txt.gz"), [], []
        with gzip.open(path, "rt", encoding="utf-8") as file:
            text = file.read().replace("．", "。").replace("`", "")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        starts = [i for i, line in enumerate(lines) if CHAPTER.match(line)]
        cut = starts[-max(1, len(starts) // 10)]
        heldout, seen = lines[cut:], set(lines[cut:])
        for line in lines[:cut]:  # Verses and forewords may stand twice.
            if len(line) < 15 or line not in seen:
                train.append(line)
                seen.update([line] if len(line) >= 15 else [])
        write(output / "train" / f"{name}.txt", train)
        write(output / "heldout" / f"{name}.txt", heldout)
        traditional = to_traditional("\n".join(train))
        counts.update("".join(train).lower())
        counts.update(traditional.lower())
        if name in ALSO_TRADITIONAL:
            write(output / "train" / f"{name}-traditional.txt", [traditional])
        if name == "xiyou-ji":
            heldout = [to_traditional("\n".join(heldout))]
            write(output / "heldout_traditional" / f"{name}.txt", heldout)
    return counts


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def vocabulary(counts):
    """Returns BERT's characters and symbols, and those that the novels have ten times."""
    bert = Path(FLAGS.bert_vocabulary).read_text(encoding="utf-8").split("\n")
    own = [
        c
        for c, n in counts.most_common()
        if not c.isspace() and n >= 3 and not (c.isascii() and c.isalnum())
    ]
    symbols = [c for c in bert if len(c) == 1 and not c.isalnum()]
    han = [c for c in bert if len(c) == 1 and "\u4e00" <= c <= "\u9fff"]
    kept = set(bert) | {c for c in own if counts[c] >= 10}
    characters = [c for c in (*symbols, *own, *han) if c in kept]
    digits = [*ALPHANUMERIC, *("##" + c for c in ALPHANUMERIC)]
    wide = [*FULL_WIDTH, *("##" + c for c in FULL_WIDTH), "##℃", "##∶", "##°", *"〇①②③④⑤⑥⑦⑧⑨⑩"]
    return list(dict.fromkeys([*SPECIAL, *digits, *characters, *wide]))


def first_weights(output, tokenizer):
    """Writes the preset that training starts from."""
    paths = sorted((output / "train").glob("*.txt"))
    lines = [x for path in paths for x in path.read_text(encoding="utf-8").splitlines()]
    ids = np.concatenate([np.array(tokenizer.encode(line).ids) for line in lines])
    counts = np.bincount(ids, minlength=tokenizer.vocabulary_size)
    keras.utils.set_random_seed(SEED)
    backbone = bert_keras.ModernBertBackbone(
        tokenizer.vocabulary_size,
        num_layers=4,
        num_heads=4,
        hidden_dim=WIDTH,
        intermediate_dim=683,
        initializer_range=WIDTH**-0.5,
    )
    preprocessor = bert_keras.TextPreprocessor(tokenizer, max_length=128)
    model = bert_keras.MaskedLM(backbone, preprocessor)
    model.save_to_preset(output / "random")
    bias = np.log((counts + 0.5) / (counts.sum() + 0.5 * counts.size))
    bias -= bias.max()
    bias[tokenizer.special_token_ids] = bias.min()
    backbone.token_embedding.embeddings.assign(factors(ids, counts))
    next(w for w in model.weights if w.shape == (counts.size,)).assign(bias)
    model.save_to_preset(output / "start")


def factors(ids, counts):
    """Returns rows of length about 1 from positive pointwise mutual information.

    Neighbours at distance d count 1/d. Tokens that occur less than five times stay random.
    """
    size, rng = counts.size, np.random.default_rng(SEED)
    pairs = sparse.csr_matrix((size, size))
    for d in range(1, WINDOW + 1):
        ones = np.full(ids.size - d, 1.0 / d)
        pairs = pairs + sparse.coo_matrix((ones, (ids[:-d], ids[d:])), (size, size)).tocsr()
    pairs = (pairs + pairs.T).tocoo()
    totals = np.asarray(pairs.sum(1)).ravel() + 1e-9
    context = totals**0.75 / np.sum(totals**0.75)
    information = np.log(pairs.data / totals[pairs.row] / context[pairs.col])
    kept = information > 0
    places = (pairs.row[kept], pairs.col[kept])
    matrix = sparse.csr_matrix((information[kept], places), shape=(size, size))
    basis = rng.normal(size=(size, WIDTH + 32))
    for _ in range(3):
        basis, _ = np.linalg.qr(matrix @ (matrix.T @ basis))
    left, values, _ = np.linalg.svd(basis.T @ matrix, full_matrices=False)
    rows = (basis @ left)[:, :WIDTH] * np.sqrt(values[:WIDTH])
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    is_frequent = (norms > 1e-6) & (counts[:, None] >= 5)
    rows = np.where(is_frequent, 0.9 * rows / np.maximum(norms, 1e-6), 0.0)
    return rows + rng.normal(size=rows.shape) * np.where(is_frequent, 0.02, WIDTH**-0.5)


if __name__ == "__main__":
    app.run(main)
