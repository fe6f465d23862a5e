"""Sentences of tagged words."""

import itertools
import re
from collections import Counter

from bert_keras import datasets, metrics
from bert_keras.answers.entity_tags import SCHEMES, extract_entities
from bert_keras.cli.baseline import Verdict
from bert_keras.cli.kinds.kind import Kind, task_of
from bert_keras.cli.options import Option

SCHEME = (
    "Count only the entities that this scheme allows. By default count as the script conlleval."
)


class TagKind(Kind):
    """Sentences as words, each with a tag."""

    name = "token_classification"
    model_class = task_of("token")
    data = (
        Option("scheme", tuple(SCHEMES), None, SCHEME),
        Option(
            "word_column", str, None, "Column of the words, from 0, or its name; else detected."
        ),
        Option(
            "tag_column", str, None, "Column of the tags, from 0 (-1 is the last), or its name."
        ),
        Option("label_names", str, None, "Names of tags that are numbers, in order.", many="list"),
    )
    model = (Option("crf", bool, False, "Score sequences of tags with a random field."),)

    def read(self):
        """Returns sentences of tagged words.

        Raises:
            ValueError: a tag is not in `--scheme`, or marks no entity though most do, or the tags
                are texts. The message names the file.
        """
        self._paths = []
        splits = super().read()
        self.tags = datasets.tag_names(*filter(None, splits[:3]))
        self._check_tags(self.tags, splits.train)
        return splits

    def held_out(self, examples, share):
        self._check_tags(datasets.tag_names(examples), examples)
        return super().held_out(examples, share)

    def read_file(self, path, part):
        if not self._paths:
            print(f"{path}: {datasets.tag_layout(path, **self.columns_of_file())}.")
        self._paths.append(path)
        options = {"label_names": self.flags.label_names, "may_lack_tags": part == "test"}
        return datasets.read_conll(path, **self.columns_of_file(), **options)

    def columns_of_file(self):
        """Returns the columns of words and tags by the flags: numbers, names or `None`."""
        columns = {name: self.flags[name].value for name in ("word_column", "tag_column")}
        return {
            name: int(text) if text and re.fullmatch(r"-?\d+", text) else text
            for name, text in columns.items()
        }

    def _check_tags(self, tags, train):
        """Refuses tags that are texts or typing errors; prints those that no example teaches."""
        num_words, scheme = sum(map(len, train.words)), self.flags.scheme
        if len(tags) > max(50, num_words // 10):
            raise ValueError(
                f"{self._paths[0]} must hold words with their tags in columns. Received: "
                f"{len(tags)} different tags, such as {tags[-1][:60]!r}, of {num_words} words. "
                "Name the columns by --word_column and --tag_column, or pass a folder of such "
                "files."
            )
        odd, known = metrics.find_odd_tags(tags, scheme), {*datasets.tag_names(train)}
        for path in self._paths:
            place = self._place(path, odd[0]) if odd else None
            if place is not None:
                kind = f"of the scheme {scheme}" if scheme else "of a scheme of entities"
                raise ValueError(
                    f"{path}, {place}: each tag must be {kind}: O, or a prefix and a type, such "
                    f"as B-PER. Received: {odd[0]!r}. Correct the file, --scheme or --tag_column."
                )
            for tag in tags:
                place = None if tag in known else self._place(path, tag)
                if place is not None:
                    print(f"{path}, {place}: no training sentence has the tag {tag!r}.")

    def _place(self, path, tag):
        return datasets.find_tag(path, tag, **self.columns_of_file())

    def read_labelled(self, path, model):
        self._paths = []
        examples, known = self.read_file(path, "dev"), model.label_names or ()
        unknown = [tag for tag in datasets.tag_names(examples) if tag not in known]
        if unknown:
            raise ValueError(
                f"{path}, {self._place(path, unknown[0])}: each tag must be one of the model's, "
                f"{model.label_names}. Received: {unknown[0]!r}. Correct the file or --tag_column."
            )
        return examples

    def settings(self, splits):
        return {"num_classes": len(self.tags), "label_names": self.tags}

    def evaluate(self, model, examples, tune=False):
        """Returns entity F1, precision and recall if tags mark entities, and accuracy."""

        def files():
            tags = model.predict_tags(examples.words)
            pairs = (zip(*row, strict=True) for row in zip(examples.words, tags, strict=True))
            rows = ["".join(f"{word}\t{tag}\n" for word, tag in row) for row in pairs]
            return {"predictions.tsv": "".join(f"{row}\n" for row in rows)}

        if not examples.tags:
            return {}, files
        scores = self._scores(model, examples)
        names = ("f1", "precision", "recall", "accuracy")
        return {name: scores[name] for name in names if name in scores}, files

    def _scores(self, model, examples):
        return model.evaluate_tags(examples.words, examples.tags, scheme=self.flags.scheme)

    def by_class(self, model, examples):
        return self._scores(model, examples).get("types", {})

    def true_labels(self, examples):
        return [" ".join(tags) for tags in examples.tags]

    def predicted_label(self, answer):
        return " ".join(tag for _, tag in answer["words"])

    def verdict(self, scores, examples):
        if "f1" in scores:
            count = sum(len(extract_entities(row)) for row in examples.tags)
            return Verdict("Entity F1", scores["f1"], count, "entities", 0.0, "finding none")
        counts = Counter(tag for row in examples.tags for tag in row)
        (tag, commonest_count), count = counts.most_common(1)[0], counts.total()
        score = "Accuracy", scores["accuracy"], count, "words"
        return Verdict(*score, commonest_count / count, f"{tag!r} for every word")

    def confusion(self, model, examples):
        predicted = model.predict_tags(examples.words)
        columns = (itertools.chain.from_iterable(tags) for tags in (examples.tags, predicted))
        return *columns, model.label_names
