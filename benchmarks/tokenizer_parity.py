"""How many texts have the tokens and offsets of transformers' fast tokenizers, kind by kind.

    python benchmarks/tokenizer_parity.py --wordpiece vocab.txt \\
        --byte_pair encoder.json,vocab.bpe --albert spiece.model --text books/ --text more.txt.gz

The texts are hard ones, natural lines drawn from all files, and random Unicode. If a vocabulary of
byte pairs lacks special tokens, they are added after its last: RoBERTa's, or BERT's for a
tokenizer.json like ModernBERT's. Without `--unigram FILE` a SentencePiece model is first trained on
the files. Unigram is also compared with SentencePiece itself, on text without special tokens.
"""

import json
import pathlib
import random
import tempfile
import unicodedata
import warnings

import sentencepiece
import tokenizers
import transformers
from absl import app, flags
from hard_texts import HARD_TEXTS, HARDER_TEXTS, random_texts

from bert_keras.corpora import find_text_files, read_documents
from bert_keras.tokenizers import (
    BytePairTokenizer,
    Tokenizer,
    UnigramTokenizer,
    WordPieceTokenizer,
)

FLAGS = flags.FLAGS
flags.DEFINE_multi_string("text", None, "Text files, plain or gzip, or folders.", required=True)
flags.DEFINE_string("wordpiece", None, "A vocab.txt.")
flags.DEFINE_list("byte_pair", None, "A vocabulary as JSON, and merges.")
flags.DEFINE_string("unigram", None, "A SentencePiece file.")
flags.DEFINE_string("albert", None, "ALBERT's SentencePiece file.")
flags.DEFINE_integer("num_lines", 3000, "Natural lines.")
flags.DEFINE_integer("num_random", 2000, "Random strings.")
flags.DEFINE_integer("seed", 0, "Of the draws.")

SENTENCE_PIECES = "sentencepiece.bpe.model"
MASK = tokenizers.AddedToken("<mask>", lstrip=True, special=True)


def main(argv):
    lines = natural_lines()
    texts = {
        "hard": HARD_TEXTS + HARDER_TEXTS,
        "natural": lines,
        "random": random_texts(FLAGS.num_random, FLAGS.seed),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (ours, theirs) in pairs(lines, pathlib.Path(folder)).items():
            report(name, {kind: count_same(ours, theirs, texts[kind]) for kind in texts}, texts)
            if name.startswith("unigram"):
                file = FLAGS.albert if ours.cls_token == "[CLS]" else f"{folder}/{SENTENCE_PIECES}"
                kinds = {
                    **texts,
                    "random without marks": list(filter(has_no_mark, texts["random"])),
                }
                same = {kind: count_same_pieces(ours, file, kinds[kind]) for kind in kinds}
                report(" beside SentencePiece", same, kinds)


def has_no_mark(text):
    """Whether no character of a text is a combining mark."""
    return not any(unicodedata.category(character)[0] == "M" for character in text)


def report(name, same, texts):
    found = ", ".join(f"{kind} {same[kind]} of {len(texts[kind])}" for kind in same)
    print(f"{name:30}{found}", flush=True)


def natural_lines():
    """Returns lines with text, drawn evenly from all files together."""
    files = [file for path in FLAGS.text for file in find_text_files(path)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_documents(files, "file", "line", "replace")
        lines = [line for document in found for line in document if line.strip()]
    chosen = random.Random(FLAGS.seed).sample(lines, min(FLAGS.num_lines, len(lines)))
    print(f"{len(chosen)} of {len(lines)} lines of {len(files)} files")
    return chosen


def pairs(lines, folder):
    """Returns our and their tokenizer of each kind."""
    found = {}
    if FLAGS.wordpiece:
        for name, lowercase in (("wordpiece, uncased", True), ("wordpiece, cased", False)):
            ours = WordPieceTokenizer(FLAGS.wordpiece, lowercase=lowercase)
            theirs = transformers.BertTokenizerFast(FLAGS.wordpiece, do_lower_case=lowercase)
            found[name] = ours, theirs
    if FLAGS.byte_pair:
        vocabulary = json.loads(pathlib.Path(FLAGS.byte_pair[0]).read_text(encoding="utf-8"))
        plain = dict(vocabulary)
        for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>"):
            vocabulary.setdefault(token, len(vocabulary))
        ours = BytePairTokenizer(vocabulary, FLAGS.byte_pair[1])
        merges = pathlib.Path(FLAGS.byte_pair[1]).read_text(encoding="utf-8").split("\n")[1:]
        merges = [tuple(merge.split(" ")) for merge in merges if merge]
        theirs = transformers.RobertaTokenizerFast(vocab=vocabulary, merges=merges, mask_token=MASK)
        found["byte pairs, roberta"] = ours, theirs
        theirs = like_modernbert(plain, merges)
        theirs.save_pretrained(folder / "modernbert")
        found["byte pairs, modernbert"] = Tokenizer.load(folder / "modernbert"), theirs
    path = folder / SENTENCE_PIECES
    if FLAGS.unigram:
        path.write_bytes(pathlib.Path(FLAGS.unigram).read_bytes())
    else:
        train_unigram(lines, path)
    for name, kind in (
        ("xlm_roberta", transformers.XLMRobertaTokenizerFast),
        ("camembert", transformers.CamembertTokenizerFast),
    ):
        theirs = kind.from_pretrained(str(folder), mask_token=MASK)
        found[f"unigram, {name}"] = UnigramTokenizer(path, name), theirs
    if FLAGS.albert:
        theirs = transformers.AlbertTokenizerFast.from_pretrained(FLAGS.albert)
        found["unigram, albert"] = UnigramTokenizer(FLAGS.albert), theirs
    return found


def like_modernbert(vocabulary, merges):
    """Returns a tokenizer of byte pairs with NFC, and BERT's special tokens after all others."""
    backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, merges))
    backend.normalizer = tokenizers.normalizers.NFC()
    backend.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = tokenizers.decoders.ByteLevel()
    special = ["[CLS]", "[SEP]", "[PAD]", "[UNK]"]
    mask = tokenizers.AddedToken("[MASK]", lstrip=True, special=True)
    backend.add_special_tokens([*special, mask])
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B [SEP]",
        special_tokens=[(token, backend.token_to_id(token)) for token in special[:2]],
    )
    roles = {f"{token[1:-1].lower()}_token": token for token in (*special, "[MASK]")}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=backend, **roles)


def train_unigram(lines, path):
    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            vocab_size=8000,
            hard_vocab_limit=False,
            minloglevel=2,
        )


def count_same(ours, theirs, texts):
    """Returns how many texts have the same ids and offsets."""
    expected = theirs(list(texts), return_offsets_mapping=True)
    return sum(
        (encoding.ids, encoding.offsets) == (ids, offsets)
        for encoding, ids, offsets in zip(
            ours.encode(list(texts)),
            expected["input_ids"],
            expected["offset_mapping"],
            strict=True,
        )
    )


def count_same_pieces(ours, file, texts):
    """Returns how many texts have the ids that SentencePiece gives them, ALBERT's by its code."""
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(file))
    names = [ours.token_to_id(theirs.id_to_piece(id)) for id in range(theirs.get_piece_size())]
    cut = albert_ids if ours.cls_token == "[CLS]" else theirs.__class__.encode
    expected = [[names[id] for id in cut(theirs, text)] for text in texts]
    return sum(map(list.__eq__, ours.plain()(list(texts)), expected))


def albert_ids(processor, text):
    """Returns a text's ids by the rules of google-research/albert, `tokenization.py`.

    A piece that ends with a digit and a comma is cut once more, without the comma.
    """
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    text = unicodedata.normalize("NFKD", text)
    text = "".join(character for character in text if not unicodedata.combining(character))
    found = []
    for piece in processor.encode_as_pieces(text.lower()):
        if len(piece) < 2 or piece[-1] != "," or not piece[-2].isdigit():
            found.append(piece)
            continue
        parts = processor.encode_as_pieces(piece[:-1].replace("▁", ""))
        if piece[0] != "▁":
            parts = [parts[0].removeprefix("▁"), *parts[1:]]
        found += [*filter(None, parts), ","]
    return list(map(processor.piece_to_id, found))


if __name__ == "__main__":
    app.run(main)
