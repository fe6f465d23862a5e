"""A student that learns to reproduce the vectors of an embedder or the scores of a reranker."""

from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from bert_keras.checks import as_column
from bert_keras.tasks.embedder import Embedder
from bert_keras.tasks.joint_task import check_two_backbones
from bert_keras.tasks.multi_vector_embedder import MultiVectorEmbedder
from bert_keras.tasks.reranker import Reranker
from bert_keras.tasks.text_embedder import TextEmbedder
from bert_keras.tasks.user_columns import is_columns, is_text
from bert_keras.training.teacher_losses import EmbeddingMSE, MarginMSE
from bert_keras.types import Data


class AnswerDistillation:
    """Trains a student on its teacher's answers to the same texts.

    The teacher answers once, before the training. It reads texts, so that teacher and student may
    have different tokenizers.

    | teacher | student | `fit` takes | default loss |
    |---|---|---|---|
    | `TextEmbedder` | `TextEmbedder`, `objective="vectors"` | texts, or `(texts, translations)` | \
`EmbeddingMSE` |
    | `Reranker` | `Reranker` | `(queries, positives, negatives)`, or `(queries, lists)` with the \
positive first | `MarginMSE` |
    | `Reranker` | an embedder, `objective="distillation"` | `(queries, positives, negatives)` | \
`MarginMSE` |

    A text and its translation both get the teacher's vector of the text. The scores of a reranker
    are its logits. `TeacherDivergence()` compares distributions over the texts of a query instead
    of margins.

    Args:
        teacher, student: see the table. The student is compiled with the default loss, unless it
            was compiled with a loss of its own.

    Attributes:
        student: the task that is trained; save and use it as any other.

    Raises:
        TypeError, ValueError: teacher and student do not fit each other.

    Example:
    ```python
    teacher = bert_keras.Reranker.from_preset("hf://cross-encoder/ms-marco-MiniLM-L6-v2")
    student = bert_keras.TextEmbedder.from_preset("minilm_l6_en_uncased", objective="distillation")
    model = bert_keras.distill(teacher, student)
    model.compile(loss=bert_keras.training.TeacherDivergence(), learning_rate=2e-5)
    model.fit((queries, positives, negatives))
    model.student.save_to_preset("small")
    ```

    Reference:
        [Reimers and Gurevych, 2020](https://arxiv.org/abs/2004.09813);
        [Hofstätter et al., 2020](https://arxiv.org/abs/2010.02666).
    """

    def __init__(self, teacher: TextEmbedder | Reranker, student: Embedder | Reranker) -> None:
        _check_pair(teacher, student)
        self.teacher, self.student = teacher, student
        if student.recipe.uses_task_loss:
            self.compile()

    @property
    def default_loss(self) -> keras.losses.Loss:
        """The loss that compares the student's answers and the teacher's."""
        if isinstance(self.teacher, TextEmbedder):
            return EmbeddingMSE()
        is_late = isinstance(self.student, MultiVectorEmbedder)
        return MarginMSE("maxsim") if is_late else MarginMSE()

    def compile(self, optimizer: Any = "auto", loss: Any = "auto", **kwargs: Any) -> None:
        """Configures the training of the student, see `Task.compile`; `"auto"` is the default loss.

        Args:
            optimizer, **kwargs: see `Task.compile`.
            loss: a loss of the teacher's vectors or scores.
        """
        self.student.compile(optimizer, self.default_loss if loss == "auto" else loss, **kwargs)

    def labels(self, x: Data, batch_size: int | None = None) -> NDArray[np.float32] | list[Any]:
        """Returns the teacher's answers to texts, after its default prompt if it has one.

        Args:
            x: see the class.
            batch_size: int, 32 by default.

        Returns:
            float32 `(num_examples, dim)`, or `(num_examples, num_texts)` of a reranker; for lists
            of texts a list of arrays.

        Raises:
            TypeError, ValueError: the texts do not fit.
        """
        if isinstance(self.teacher, TextEmbedder):
            texts = x[0] if is_columns(x) else x
            return self.teacher.embed(as_column(texts, "texts"), batch_size=batch_size)
        if not is_columns(x):
            raise ValueError(
                "A reranker scores the texts of queries. Received: one column. Pass "
                "`(queries, positives, negatives)`."
            )
        queries, *columns = map(as_column, x)
        if len(columns) > 1 or is_text(columns[0]):
            scores = [self._scores(queries, column, batch_size) for column in columns]
            return np.stack(scores, axis=1)
        counts = [len(texts) for texts in columns[0]]
        texts = [text for texts in columns[0] for text in texts]
        repeated = [query for query, n in zip(queries, counts, strict=True) for _ in range(n)]
        return np.split(self._scores(repeated, texts, batch_size), np.cumsum(counts)[:-1])

    def _scores(self, queries, texts, batch_size):
        return self.teacher.predict((queries, texts), batch_size, verbose=0)[:, 0]

    def fit(
        self, x: Data, *, validation_data: Data | None = None, **kwargs: Any
    ) -> keras.callbacks.History:
        """Trains the student on the teacher's answers, see `Task.fit`.

        Args:
            x: texts, see the class.
            validation_data: texts of the same form, or `None`.
            **kwargs: see `Task.fit`.

        Returns:
            A `keras.callbacks.History`.
        """
        if validation_data is not None:
            validation_data = validation_data, self.labels(validation_data)
        return self.student.fit(x, self.labels(x), validation_data=validation_data, **kwargs)

    def evaluate(self, x: Data, **kwargs: Any) -> Any:
        """Returns the student's loss on the teacher's answers, see `Task.evaluate`."""
        return self.student.evaluate(x, self.labels(x), **kwargs)


def _check_pair(teacher, student):
    """Raises `TypeError` or `ValueError` unless the student can learn from the teacher."""
    has_vectors = isinstance(teacher, TextEmbedder)
    classes = TextEmbedder if has_vectors else (Reranker, Embedder)
    if not isinstance(student, classes):
        required = "a TextEmbedder" if has_vectors else "a Reranker or an embedder"
        raise TypeError(
            f"The student of a {type(teacher).__name__} must be {required}. Received: "
            f"{type(student).__name__}."
        )
    check_two_backbones(teacher, student)
    objective = "vectors" if has_vectors else "distillation"
    if isinstance(student, Embedder) and student.objective != objective:
        raise ValueError(
            f"The student of a {type(teacher).__name__} must have objective={objective!r}. "
            f"Received: {student.objective!r}. Make it with this objective."
        )
    if has_vectors and student.dim != teacher.dim:
        raise ValueError(
            "The student's vectors must be as wide as the teacher's. Received: "
            f"{student.dim} and {teacher.dim} values. Make the student with "
            f'projection={{"units": {teacher.dim}}}.'
        )
