"""Scores of predictions, each equal to its reference implementation.

Only scores that scikit-learn, SciPy and Keras lack are here. Keras has precision, recall, F1 and
the area under the ROC curve. A task passes each metric probabilities, classes or one-hot labels, as
it expects, so that it equals scikit-learn's score, or refuses it, see `metrics.label_kinds`:

```python
classifier.compile(metrics=["accuracy", "precision", "recall", "f1_score", "auc"])
```

A metric of your own gets the labels as the loss takes them, and the outputs, which are logits. For
another form set its attribute `reads`, on a function too: a pair of `"classes"`, `"one_hot"`,
`"probabilities"` and `"logits"`, for the labels and the predictions.

```python
def brier(y_true, y_pred):
    return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)

brier.reads = ("probabilities", "probabilities")
classifier.compile(metrics=[brier])
```
"""

from bert_keras.answers.entity_tags import extract_entities as extract_entities
from bert_keras.answers.entity_tags import find_odd_tags as find_odd_tags
from bert_keras.answers.similarity import similarity_matrix as similarity_matrix
from bert_keras.metrics.calibration import best_temperature as best_temperature
from bert_keras.metrics.calibration import expected_calibration_error as expected_calibration_error
from bert_keras.metrics.chinese_spans import cmrc_scores as cmrc_scores
from bert_keras.metrics.entities import entity_scores as entity_scores
from bert_keras.metrics.ranking import mean_average_precision as mean_average_precision
from bert_keras.metrics.ranking import mrr as mrr
from bert_keras.metrics.ranking import ndcg as ndcg
from bert_keras.metrics.ranking import recall as recall
from bert_keras.metrics.spans import find_best_threshold as find_best_threshold
from bert_keras.metrics.spans import squad_v1_scores as squad_v1_scores
from bert_keras.metrics.spans import squad_v2_scores as squad_v2_scores
from bert_keras.metrics.streaming import MaskedPerplexity as MaskedPerplexity
from bert_keras.metrics.thresholds import tune_thresholds as tune_thresholds
