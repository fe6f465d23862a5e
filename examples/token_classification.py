"""Fine-tune BERT, or another encoder, to tag words: named entities, or parts of speech.

    python examples/token_classification.py --data_dir wnut17 --learning_rate 1e-4 --epochs 5
    python examples/token_classification.py --data_dir ud_english_ewt --epochs 2
    python examples/token_classification.py --data_dir msra_ner --preset bert_base_zh --crf
    python examples/token_classification.py --train_file train.conll --dev_file dev.conll

`--data_dir` takes a folder of column files in their original layout (CoNLL-2003, WNUT-17, the Broad
Twitter Corpus, Wikigold, Weibo, People's Daily, MSRA) or of CoNLL-U; files are told by `train`,
`dev` and `test` in their names. Tags that mark entities, in any scheme, are scored by entity
precision, recall and F1 as conlleval does, or with `--scheme` as that allows; all others by
accuracy. A `--test_file` may hold words alone. `--crf` puts a conditional random field on top.

Writes into `--output_dir`: model.keras, metrics.json, and test_predictions.tsv where there is a
test file: word and tag a line. KERAS_BACKEND chooses the backend.

Expected for the first command with `--dtype mixed_bfloat16`, over 3 seeds on PyTorch: dev F1 of
entities 0.566 ± 0.019, in 7 minutes on one core. More, beside transformers: examples/README.md.
"""

import recipe
import tagged
from absl import flags

import bert_keras
from bert_keras.cli import mistakes

FLAGS = flags.FLAGS
flags.adopt_module_key_flags(tagged)  # for --help

flags.DEFINE_bool("crf", False, "Score whole sequences of tags by a conditional random field.")

SCORES = ("f1", "precision", "recall", "accuracy")


def main(argv):
    train, dev, test, label_names = tagged.load_data()
    train = recipe.sampled(train)
    print(f"{len(train)} sentences to train on, {len(dev)} to measure on; tags: {label_names}")

    def run(seed):
        tagger = bert_keras.TokenClassifier.from_preset(
            FLAGS.preset,
            num_classes=len(label_names),
            label_names=label_names,
            crf=FLAGS.crf,
            max_length=FLAGS.max_length,
            dtype=FLAGS.dtype,
        )
        recipe.check_vocabulary(tagger, [" ".join(words) for words in train.words])
        tagger.compile(learning_rate=FLAGS.learning_rate)
        if FLAGS.epochs:
            history = tagger.fit(
                train.words,
                train.tags,
                batch_size=FLAGS.batch_size,
                epochs=FLAGS.epochs,
                sort_window=FLAGS.sort_window,
                validation_data=(dev.words, dev.tags),
            )
            recipe.plot_learning_curves(history, seed)
        return tagger, scores(tagger, dev)

    tagger, rows = recipe.run_seeds(run)
    reloaded = recipe.save_and_load(tagger)
    print("Loaded again, it answers:")
    for answer in reloaded.tag(dev.words[:3]):
        print(f"  {answer['text']}  ->  {readable(answer)}")
    results = recipe.over_seeds(rows)
    if test:
        tagged.write_predictions(test.words, reloaded.predict_tags(test.words))
        if test.tags:
            results |= {f"test_{name}": value for name, value in scores(reloaded, test).items()}
    recipe.finish(results)


def scores(tagger, sentences):
    """Returns entity F1, precision and recall where tags mark entities, and accuracy."""
    found = tagger.evaluate_tags(sentences.words, sentences.tags, scheme=FLAGS.scheme)
    return {name: found[name] for name in SCORES if name in found}


def readable(answer):
    """Returns the entities of an answer of `tag` in a line; the tags where there are none."""
    entities = [f"{e['text']} ({e['type']} {e['score']:.2f})" for e in answer["entities"]]
    return ", ".join(entities) or " ".join(f"{word}/{tag}" for word, tag in answer["words"])


if __name__ == "__main__":
    mistakes.run(main)
