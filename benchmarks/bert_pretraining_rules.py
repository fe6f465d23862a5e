"""The rules of google-research/bert's create_pretraining_data.py, written down plainly in Python.

What the examples of this library are compared with, and what their speed is measured against: one
token is one str, tokenization, packing and masking are loops over tokens, as there. Given the same
`random.Random`, the draws come in the same order as in Google's script.

Reference: https://github.com/google-research/bert
"""

import collections
import unicodedata

Example = collections.namedtuple("Example", "tokens segment_ids not_next positions labels")


class PlainTokenizer:
    """BERT's tokenizer, a character and a piece at a time."""

    def __init__(self, vocabulary):
        self.ids = {token: index for index, token in enumerate(vocabulary)}
        self.words = list(self.ids)

    def tokenize(self, text):
        """Returns the pieces of a text."""
        pieces = []
        for word in self._words(text):
            pieces.extend(self._pieces(word))
        return pieces

    def _words(self, text):
        cleaned = []
        for character in text:
            code = ord(character)
            if code in (0, 0xFFFD) or _is_control(character):
                continue
            if _is_chinese(code):
                cleaned.append(f" {character} ")
            else:
                cleaned.append(" " if _is_space(character) else character)
        words = []
        for word in "".join(cleaned).strip().split():
            word = unicodedata.normalize("NFD", word.lower())
            word = "".join(c for c in word if unicodedata.category(c) != "Mn")
            words.extend(_split_punctuation(word))
        return " ".join(words).split()

    def _pieces(self, word):
        if len(word) > 200:
            return ["[UNK]"]
        pieces, start = [], 0
        while start < len(word):
            end = len(word)
            while start < end:
                piece = word[start:end] if start == 0 else "##" + word[start:end]
                if piece in self.ids:
                    break
                end -= 1
            else:
                return ["[UNK]"]
            pieces.append(piece)
            start = end
        return pieces


def _is_space(character):
    return character in " \t\n\r" or unicodedata.category(character) == "Zs"


def _is_control(character):
    return character not in "\t\n\r" and unicodedata.category(character) in ("Cc", "Cf")


def _is_chinese(code):
    return (
        0x4E00 <= code <= 0x9FFF
        or 0x3400 <= code <= 0x4DBF
        or 0x20000 <= code <= 0x2A6DF
        or 0x2A700 <= code <= 0x2B73F
        or 0x2B740 <= code <= 0x2B81F
        or 0x2B820 <= code <= 0x2CEAF
        or 0xF900 <= code <= 0xFAFF
        or 0x2F800 <= code <= 0x2FA1F
    )


def _is_punctuation(character):
    code = ord(character)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(character).startswith("P")


def _split_punctuation(word):
    parts, is_new = [], True
    for character in word:
        if _is_punctuation(character):
            parts.append([character])
            is_new = True
        else:
            if is_new:
                parts.append([])
            parts[-1].append(character)
            is_new = False
    return ["".join(part) for part in parts]


def pairs_of_document(documents, index, max_length, short_probability, generator):
    """Yields `(a, b, not_next)` for one document, lists of tokens.

    Args:
        documents: list of documents, each a list of sentences, each a list of tokens.
        index: int, the document to cut.
        max_length: int, the longest row, three special tokens included.
        short_probability: float.
        generator: `random.Random`.
    """
    document, room = documents[index], max_length - 3
    target = room
    if generator.random() < short_probability:
        target = generator.randint(2, room)
    chunk, length, place = [], 0, 0
    while place < len(document):
        chunk.append(document[place])
        length += len(document[place])
        if place == len(document) - 1 or length >= target:
            a_end = generator.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
            a = [token for sentence in chunk[:a_end] for token in sentence]
            b = []
            if len(chunk) == 1 or generator.random() < 0.5:
                not_next = 1
                for _ in range(10):
                    other = generator.randint(0, len(documents) - 1)
                    if other != index:
                        break
                start = generator.randint(0, len(documents[other]) - 1)
                for sentence in documents[other][start:]:
                    b.extend(sentence)
                    if len(b) >= target - len(a):
                        break
                # The sentences that were not used are put back.
                place -= len(chunk) - a_end
            else:
                not_next = 0
                b = [token for sentence in chunk[a_end:] for token in sentence]
            truncate_pair(a, b, room, generator)
            yield a, b, not_next
            chunk, length = [], 0
        place += 1


def truncate_pair(a, b, room, generator):
    """Shortens two lists in place until they fit together."""
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        if generator.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def mask(tokens, rate, max_predictions, words, generator, whole_words=False):
    """Returns the masked tokens, the positions and the tokens that stood there."""
    groups = []
    for position, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole_words and groups and token.startswith("##"):
            groups[-1].append(position)
        else:
            groups.append([position])
    generator.shuffle(groups)
    num_predictions = min(max_predictions, max(1, round(len(tokens) * rate)))
    output, chosen = list(tokens), []
    for group in groups:
        if len(chosen) >= num_predictions:
            break
        if len(chosen) + len(group) > num_predictions:
            continue
        for position in group:
            if generator.random() < 0.8:
                output[position] = "[MASK]"
            elif generator.random() >= 0.5:
                output[position] = words[generator.randint(0, len(words) - 1)]
            chosen.append(position)
    chosen.sort()
    return output, chosen, [tokens[position] for position in chosen]


def create_examples(documents, words, max_length, rate, max_predictions, duplicates, generator):
    """Returns the `Example`s of all documents, shuffled.

    Args:
        documents: as for `pairs_of_document`.
        words: list of str, the vocabulary.
        max_length: int.
        rate: float, share of tokens to predict.
        max_predictions: int.
        duplicates: int, passes over the documents.
        generator: `random.Random`.
    """
    examples = []
    for _ in range(duplicates):
        for index in range(len(documents)):
            for a, b, not_next in pairs_of_document(documents, index, max_length, 0.1, generator):
                tokens = ["[CLS]", *a, "[SEP]", *b, "[SEP]"]
                segment_ids = [0] * (len(a) + 2) + [1] * (len(b) + 1)
                masked = mask(tokens, rate, max_predictions, words, generator)
                examples.append(Example(masked[0], segment_ids, not_next, *masked[1:]))
    generator.shuffle(examples)
    return examples
