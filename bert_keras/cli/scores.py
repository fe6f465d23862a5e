"""The scores of a task on labelled examples, the main one first, and its answers."""

import functools

import keras
import numpy as np

import bert_keras
from bert_keras import datasets, metrics
from bert_keras.checks import refuse_unused
from bert_keras.cli.training_files import answered

# For prediction. Answers do not depend on it.
BATCH_SIZE = 32


def evaluate_texts(flags, classifier, examples, further):
    """Returns scores, none without labels, and a function that returns the answers by file name.

    With several labels, `further["answer_thresholds"]` decide which labels are in the answers, and
    `further["scoring_thresholds"]` which ones count for the scores; both are 0.5 by default.
    """
    scores, threshold = {}, further.get("answer_thresholds", 0.5)
    if examples.labels is not None and "scoring_thresholds" in further:
        probabilities = classifier.probabilities(examples.texts, BATCH_SIZE)
        scores = text_scores(examples.labels, probabilities - further["scoring_thresholds"])
    elif examples.labels is not None:
        outputs = classifier.predict(examples.texts, batch_size=BATCH_SIZE, verbose=0)
        scores = text_scores(examples.labels, outputs)
    answer = functools.partial(classifier.classify, examples.texts, BATCH_SIZE, threshold)
    return scores, lambda: {"predictions.jsonl": answer()}


def text_scores(labels, outputs):
    """Returns the metrics for the kind of labels, from logits or scores."""
    import scipy.stats
    from sklearn.metrics import f1_score, matthews_corrcoef

    if labels.dtype.kind == "f":
        return {
            "pearson": float(scipy.stats.pearsonr(labels, outputs[:, 0]).statistic),
            "spearman": float(scipy.stats.spearmanr(labels, outputs[:, 0]).statistic),
        }

    def f1(predicted, average):
        return float(f1_score(labels, predicted, average=average, zero_division=0.0))

    if labels.ndim == 2:
        predicted = (outputs >= 0).astype(int)
        return {f"{average}_f1": f1(predicted, average) for average in ("macro", "micro")}
    predicted = outputs.argmax(-1)
    return {
        "accuracy": float((predicted == labels).mean()),
        "f1": f1(predicted, "binary" if outputs.shape[1] == 2 else "macro"),
        "matthews_correlation": float(matthews_corrcoef(labels, predicted)),
    }


def tune_thresholds(flags, classifier, parts):
    """Returns thresholds tuned on dev, one per label, and the scores of other examples.

    The other examples, scored with 0.5 and with the thresholds, are the labelled test set, or
    without one half of the dev set.
    """
    dev, test, name = parts.dev, parts.test, "test"
    if test is None or test.labels is None:
        name = "dev_half"
        try:
            dev, test = datasets.split_examples(dev, test_size=len(dev) // 2, seed=0)
        except ValueError as error:
            print(f"No thresholds are tuned on half of the dev set: {error}")
            return None, {}
    thresholds = metrics.tune_thresholds(dev.labels, classifier.probabilities(dev.texts))
    probabilities = classifier.probabilities(test.texts)
    scores = {f"{name}_{k}": v for k, v in text_scores(test.labels, probabilities - 0.5).items()}
    tuned = text_scores(test.labels, probabilities - thresholds)
    scores |= {f"{name}_tuned_{key}": value for key, value in tuned.items()}
    print(f"Thresholds tuned on {len(dev)} examples, measured on {len(test)} others: {scores}")
    return thresholds, scores


def baselines(flags, make, parts):
    """Returns the scores of a classifier on a frozen encoder, and of the most frequent class.

    With two classes F1 is that of the second, which the majority may never predict.
    """
    if not flags.baselines:
        return {}
    train, dev = parts.train, parts.dev
    if train.problem_type != "single_label":
        rule = f"--baselines are for single-label problems, not for {train.problem_type!r}"
        refuse_unused(rule, {"--baselines": flags.baselines}, "Leave them out.")
    print("Baseline: a classifier on the frozen encoder.")
    keras.utils.set_random_seed(flags.seed)
    frozen = make(frozen="backbone", pooling="mean")
    frozen.compile(learning_rate=1e-2)
    vectors = bert_keras.encode_features(frozen, train.texts, train.labels)
    bert_keras.HeadTask(frozen).fit(vectors, batch_size=BATCH_SIZE, epochs=3)
    majority = np.zeros((len(dev), max(2, len(train.label_names))))
    majority[:, np.bincount(train.labels).argmax()] = 1
    return {
        "frozen": text_scores(dev.labels, frozen.predict(dev.texts, verbose=0)),
        "majority": text_scores(dev.labels, majority),
    }


def evaluate_tags(flags, tagger, sentences, further):
    """Returns entity F1, precision and recall if tags mark entities, and accuracy."""

    def files():
        tags = tagger.predict_tags(sentences.words)
        pairs = (zip(*row, strict=True) for row in zip(sentences.words, tags, strict=True))
        rows = ["".join(f"{word}\t{tag}\n" for word, tag in row) for row in pairs]
        return {"predictions.tsv": "".join(f"{row}\n" for row in rows)}

    if not sentences.tags:
        return {}, files
    scores = tagger.evaluate_tags(sentences.words, sentences.tags, scheme=flags.scheme)
    names = ("f1", "precision", "recall", "accuracy")
    return {name: scores[name] for name in names if name in scores}, files


def evaluate_choices(flags, model, examples, further):
    """Returns the share of examples for which the model chooses the right choice."""
    answers = model.choose(examples.contexts, examples.choices, BATCH_SIZE)
    scores = {}
    if examples.labels is not None:
        predicted = np.array([answer["index"] for answer in answers])
        scores["accuracy"] = float((predicted == examples.labels).mean())
    return scores, lambda: {"predictions.jsonl": answers}


def evaluate_questions(flags, qa, examples, further):
    """Returns the official scores, F1 first, and the files of the official scripts.

    Only questions with answers are scored. For SQuAD 2.0 the threshold is tuned on the dev
    set, if it has both kinds of questions.
    """
    n_best = qa.n_best(examples, flags.n_best, verbose=0)
    scores = question_scores(qa, further["metric"], examples, n_best, further["tune"])
    return scores, lambda: question_files(qa, further["metric"], examples, n_best)


def question_scores(qa, metric, examples, n_best, tune=False):
    """Returns the scores of the answers in `n_best`, see `evaluate_questions`."""
    best_of = {e.id: best for e, best in zip(examples, n_best, strict=True)}
    examples = answered(metric, examples)
    if not examples:
        return {}
    answers = {e.id: [answer.text for answer in e.answers] for e in examples}
    texts = {name: best_of[name].spans[0].text for name in answers}
    if metric != "squad_v2":
        function = metrics.cmrc_scores if metric == "cmrc" else metrics.squad_v1_scores
        scores = function(answers, texts)
        return {"f1": scores["f1"], "exact_match": scores["exact_match"]}
    if tune and any(answers.values()) and not all(answers.values()):
        qa.tune_no_answer_threshold(examples, found=[best_of[name] for name in answers])
    elif tune:
        kind = "with" if any(answers.values()) else "without"
        print(f"Only questions {kind} an answer to measure on: no threshold is tuned.")
    options = {}
    if qa.no_answer_threshold is not None:
        null_odds = {name: best_of[name].no_answer_score for name in answers}
        options = {"no_answer_scores": null_odds, "threshold": qa.no_answer_threshold}
    scores = metrics.squad_v2_scores(answers, texts, **options)
    names = ("f1", "exact", "HasAns_f1", "HasAns_exact", "NoAns_exact")
    selected = {name: scores[name] for name in names if name in scores}
    return {**selected, "no_answer_threshold": qa.no_answer_threshold} if options else selected


def question_files(qa, metric, examples, n_best):
    """Returns the files of the official scripts: texts, n-best lists, and SQuAD 2.0's null odds."""
    texts, lists, null_odds = {}, {}, {}
    for example, best in zip(examples, n_best, strict=True):
        spans = best.spans
        if metric == "squad_v2":
            spans = sorted([*spans, best.no_answer], key=lambda span: -span.probability)
        texts[example.id] = "" if qa.has_no_answer(best) else best.spans[0].text
        names = ("text", "probability", "start_logit", "end_logit")
        lists[example.id] = [{name: getattr(span, name) for name in names} for span in spans]
        null_odds[example.id] = best.no_answer_score
    files = {"predictions.json": texts, "nbest_predictions.json": lists}
    return {**files, "null_odds.json": null_odds} if metric == "squad_v2" else files
