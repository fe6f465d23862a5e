"""Entities in the form of transformers' pipeline, from whole words or from tokens."""

import numpy as np

from bert_keras.answers.probabilities import softmax

STRATEGIES = ("none", "simple", "first", "average", "max")


def own_entities(answer):
    """Returns the entities that a task's own `tag` found."""
    names = {"type": "entity_group", "text": "word"}
    entities = answer["entities"]
    return [{names.get(name, name): value for name, value in x.items()} for x in entities]


def pipeline_entities(served, text, logits, strategy, ignored):
    """Returns what a tagger says of each token, or of each run of tokens with the same type.

    `"none"` returns tokens as they are, and `"simple"` groups them. The others group words: a word
    has the tag of its `"first"` token, of the token with the highest probability (`"max"`), or of
    the mean of its tokens' probabilities (`"average"`). A tag `B-PER` starts a group; `I-PER`, or a
    tag without a prefix, continues one of its type.

    Args:
        served: `Served`, a tagger.
        text: str.
        logits: float `(num_tokens, num_tags)`, special tokens left out.
        strategy: one of `STRATEGIES`.
        ignored: list of str, the types, or for `"none"` the tags, to leave out.
    """
    tokenizer, scores = served.model.tokenizer, softmax(np.asarray(logits))
    names = served.setting("label_names") or [f"LABEL_{i}" for i in range(scores.shape[-1])]
    encoding = tokenizer.encode(text, special_tokens=False)
    continues, is_plain = tokenizer.continued_words(text, encoding), strategy == "none"
    pieces, units, groups = list(encoding.pieces), [], []
    for place, (start, end) in enumerate(encoding.offsets):
        if pieces[place] == tokenizer.unknown_token:
            pieces[place], continues[place] = text[start:end], False
        if units and continues[place] and strategy in ("first", "average", "max"):
            units[-1].append(place)
        else:
            units.append([place])
    for unit in units:
        rows = scores[unit]
        likeliest = rows.max(1).argmax() if strategy == "max" else 0
        best = rows.mean(0) if strategy == "average" else rows[likeliest]
        name = names[best.argmax()]
        kind = name.removeprefix("B-").removeprefix("I-")
        is_new = is_plain or not groups or groups[-1][1] != kind or name.startswith("B-")
        if is_new:
            groups.append((name, kind, [], []))
        groups[-1][2].append(float(best.max()))
        groups[-1][3].extend(unit)
    entities, first = [], len(tokenizer.layout.before)
    for name, _, probabilities, places in groups:
        if is_plain:
            entity = {"entity": name, "index": first + places[0], "word": pieces[places[0]]}
        else:
            name = name.split("-", 1)[-1]
            entity = {"entity_group": name, "word": tokenizer.join([pieces[x] for x in places])}
        start, end = encoding.offsets[places[0]][0], encoding.offsets[places[-1]][1]
        entity |= {"start": start, "end": end, "score": float(np.mean(probabilities))}
        entities += [] if name in ignored else [entity]
    return entities
