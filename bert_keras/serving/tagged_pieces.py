"""Entities in the form of transformers' pipeline, from whole words or from tokens."""

import numpy as np

from bert_keras.answers.aggregated_entities import Piece, aggregated_entities
from bert_keras.answers.probabilities import softmax


def own_entities(answer):
    """Returns the entities that a task's own `tag` found."""
    return [
        {
            "entity_group": entity["type"],
            "word": entity["text"],
            "start": entity["start"],
            "end": entity["end"],
            "score": entity["score"],
        }
        for entity in answer["entities"]
    ]


def entities_of_pieces(rows, logits, strategy, ignored, served):
    """Returns the entities of texts by a strategy of transformers' pipeline."""
    tokenizer, all_entities = served.model.tokenizer, []
    names = served.setting("label_names")
    first = len(tokenizer.layout.before)
    for (text,), of_text in zip(rows, logits, strict=True):
        pieces = _pieces_of(tokenizer, text, first)
        names = names or [f"LABEL_{i}" for i in range(of_text.shape[-1])]
        scores = softmax(np.asarray(of_text))
        entities = aggregated_entities(pieces, scores, names, strategy, tokenizer.join)
        kinds = "entity" if strategy == "none" else "entity_group"
        all_entities.append([entity for entity in entities if entity[kinds] not in ignored])
    return all_entities


def _pieces_of(tokenizer, text, first):
    """Returns the `Piece`s of a text, the first of which is at `first` in the input."""
    encoding = tokenizer.encode(text, special_tokens=False)
    unknown, pieces = tokenizer.unknown_token, []
    for place, continues in enumerate(tokenizer.continued_words(text, encoding)):
        piece, (start, end) = encoding.pieces[place], encoding.offsets[place]
        if piece == unknown:
            piece, continues = text[start:end], False
        pieces.append(Piece(piece, first + place, start, end, continues))
    return pieces
