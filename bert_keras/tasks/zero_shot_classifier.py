"""Classes without training examples, by entailment."""

from typing import Any, Self, Unpack

from bert_keras.answers.entailment import entailment_columns
from bert_keras.checks import refuse_options
from bert_keras.models.export_mixin import exported_task
from bert_keras.tasks.text_classifier import TextClassifier
from bert_keras.types import Path, PredictOptions, Texts, Threshold


class ZeroShotClassifier:
    """Classifies texts by labels that it was not trained on.

    A model of entailment reads each text with a hypothesis for each label, such as "This example is
    sports.". With `E` and `C` the logits of entailment and contradiction, the probability of a
    label is `softmax(E)` over the labels, or with `multi_label` `softmax([C, E])[1]` for each label
    on its own; "neutral" does not count. This is the rule of transformers' pipeline. A text costs
    as many pairs as there are labels.

    Args:
        classifier: a `TextClassifier` of pairs with a label `entailment`, or what
            `bert_keras.export.runtime.load` returns for the export of one.

    Raises:
        ValueError: no label means entailment.

    Example:
    ```python
    classifier = bert_keras.ZeroShotClassifier.from_preset("hf://cross-encoder/nli-MiniLM2-L6-H768")
    classifier.classify("The team won the final.", ["sports", "politics"])
    # {"label": "sports", "probabilities": {"sports": 0.98, "politics": 0.02}}
    ```

    Reference:
        [Yin et al., 2019](https://arxiv.org/abs/1909.00161).
    """

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier
        self.label_names = classifier.answer_settings()["label_names"]
        entailment_columns(self.label_names)

    @classmethod
    def from_preset(cls, source: Path, **kwargs: Any) -> Self:
        """Returns a classifier from an entailment model.

        Args:
            source: what `TextClassifier.from_preset` takes, or a folder that
                `export(folder, format="onnx")` wrote.
            **kwargs: see `TextClassifier.from_preset`; `label_names` where the config lacks them.

        Raises:
            ValueError: no label means entailment, or a program gets further arguments.
        """
        exported = exported_task(source)
        if exported is not None:
            refuse_options("An exported folder takes no arguments", {"arguments": kwargs or None})
        return cls(exported or TextClassifier.from_preset(source, **kwargs))

    def classify(
        self,
        texts: str | Texts,
        labels: list[str],
        hypothesis: str = "This example is {}.",
        multi_label: bool = False,
        *,
        threshold: Threshold = 0.5,
        **options: Unpack[PredictOptions],
    ) -> Any:
        """Returns answers that a person can read.

        Args:
            texts: a str or a column of str.
            labels: list of str.
            hypothesis: str, the template of the hypotheses, with `{}` in the place of a label. It
                should be in the language of the texts: `"这段话的主题是{}。"`.
            multi_label: bool, whether several labels, or none, may be right. A single label is
                always judged on its own.
            threshold: the least probability of a label that counts where several may, see
                `TextClassifier.classify`.
            **options: `batch_size` and `verbose`, see `TextClassifier.classify`.

        Returns:
            For a str one dict, for a column a list of dicts:
            `{"label": name, "probabilities": {name: float}}`, or where several labels may be right
            `{"labels": [name, ...], "probabilities": {name: float}}`.

        Raises:
            TypeError, ValueError: texts, labels, the hypothesis or the threshold do not fit.
        """
        chosen = {"hypothesis": hypothesis, "multi_label": multi_label, "threshold": threshold}
        return self.classifier.ask("zero_shot", texts, labels=labels, **chosen, **options)
