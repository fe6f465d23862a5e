r"""Train a WordPiece vocabulary on text files.

    bert-keras vocabulary --input 'books/*.txt.gz' --vocabulary_size 8192 \
        --output vocab.txt

Reads plain or gzip UTF-8 text, line by line. The same text gives the same vocabulary.
"""

import json

from bert_keras.cli.options import REQUIRED, TRACEBACK, Option, parse
from bert_keras.corpora import find_text_files, train_wordpiece
from bert_keras.tokenizers import write_vocabulary

OPTIONS = (
    Option("input", list, REQUIRED, "Text files, folders of such, or patterns with *."),
    Option("output", str, "vocab.txt", "File to write."),
    Option("vocabulary_size", int, 30522, "Most tokens in the vocabulary.", 6),
    Option("lowercase", bool, True, "Lowercase the text and strip its accents."),
    Option("min_frequency", int, 2, "How often a pair of pieces must occur to be merged."),
    Option("limit_alphabet", int, 1000, "Most characters to keep; about 8,000 for Chinese."),
    TRACEBACK,
)
GROUPS = {"Flags": OPTIONS}


def main(arguments):
    """Runs the command with the arguments after `vocabulary`."""
    flags, _ = parse("vocabulary", __doc__, GROUPS, arguments)
    files = find_text_files(flags.input)
    vocabulary = train_wordpiece(
        files,
        vocabulary_size=flags.vocabulary_size,
        lowercase=flags.lowercase,
        min_frequency=flags.min_frequency,
        limit_alphabet=flags.limit_alphabet,
    )
    write_vocabulary(flags.output, vocabulary)
    print(json.dumps({"num_files": len(files), "tokens": len(vocabulary)}))
