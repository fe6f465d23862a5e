"""Trains, saves, loads and classifies once, where TensorFlow is not installed. See `run_all.py`.

python tests/small_run.py FOLDER    bert_keras must be installed below FOLDER
"""

import os
import sys
import tempfile

# Importing a name that is None raises ImportError, as if it were not installed.
sys.modules["tensorflow"] = None
sys.modules["tensorflow_text"] = None

import keras
import numpy as np

import bert_keras

found = os.path.realpath(bert_keras.__file__)
assert found.startswith(os.path.realpath(sys.argv[1])), found
for name in ("py.typed", "__init__.pyi"):
    assert os.path.exists(os.path.join(os.path.dirname(found), name)), name

letters = "abcdefgh"
vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + x for x in letters)]
backbone = bert_keras.BertBackbone(
    len(vocabulary), num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32
)
preprocessor = bert_keras.TextPreprocessor(bert_keras.WordPieceTokenizer(vocabulary))
classifier = bert_keras.TextClassifier(
    backbone, preprocessor=preprocessor, label_names=["with a", "without"]
)
texts = ["a b c", "d e", "h a", "g g g g", "b", "a a"] * 8
labels = ["with a" if "a" in text else "without" for text in texts]
classifier.compile(learning_rate=1e-2)
history = classifier.fit(texts, labels, epochs=6, batch_size=8, verbose=0)
assert history.history["loss"][-1] < history.history["loss"][0]
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "classifier.keras")
    classifier.save(path)
    reloaded = keras.models.load_model(path)
expected = classifier.predict(texts, verbose=0)
np.testing.assert_allclose(reloaded.predict(texts, verbose=0), expected, atol=1e-6)
print(keras.backend.backend(), reloaded.classify("a b"))
