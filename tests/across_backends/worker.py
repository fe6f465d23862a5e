"""Runs in a process of its own, on the backend of KERAS_BACKEND.

worker.py save FILE       trains a few steps, saves, and writes FILE.npz with the predictions
worker.py load FILE OUT   loads, predicts, trains on, predicts; writes OUT.npz
"""

import sys

import keras
import numpy as np

import bert_keras

TEXTS = ["a b c", "d e f g", "h", "a a a b b", "g f e d c b a", "b c"] * 4
LABELS = [0, 1, 1, 0, 1, 0] * 4
LETTERS = "abcdefgh"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *("##" + x for x in LETTERS)]


def make():
    backbone = bert_keras.BertBackbone(
        len(VOCABULARY),
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=32,
        dropout=0.0,
        max_sequence_length=16,
    )
    preprocessor = bert_keras.TextPreprocessor(
        bert_keras.WordPieceTokenizer(VOCABULARY), max_length=16
    )
    return bert_keras.TextClassifier(backbone, preprocessor=preprocessor, label_names=["no", "yes"])


def train(classifier, first, last):
    classifier.fit(
        TEXTS, LABELS, batch_size=8, initial_epoch=first, epochs=last, shuffle=False, verbose=0
    )


if sys.argv[1] == "save":
    keras.utils.set_random_seed(7)
    classifier = make()
    classifier.compile(optimizer=bert_keras.AdamW(bert_keras.WarmupDecay(1e-3, total_steps=12)))
    train(classifier, 0, 2)
    classifier.save(sys.argv[2])
    before = classifier.predict(TEXTS, verbose=0)
    train(classifier, 2, 4)
    np.savez(sys.argv[2] + ".npz", before=before, after=classifier.predict(TEXTS, verbose=0))
else:
    classifier = keras.models.load_model(sys.argv[2])
    before = classifier.predict(TEXTS, verbose=0)
    train(classifier, 2, 4)
    np.savez(sys.argv[3], before=before, after=classifier.predict(TEXTS, verbose=0))
