"""The pairs of sentences of google-research/bert's create_pretraining_data.py, in plain Python.

Given the same `random.Random`, the draws come in the same order as in Google's script.

Reference: https://github.com/google-research/bert
"""


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
