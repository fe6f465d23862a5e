"""The hub reads the model card, and the code in it runs."""

import re

import keras
import pytest
from tiny import tiny_backbone, tiny_classifier, tiny_preprocessor

import bert_keras
from bert_keras.presets.model_card import MARK, README

hub = pytest.importorskip("huggingface_hub")

pytestmark = pytest.mark.once
WRITERS = ("save_to_preset", "export_to_huggingface", "export_to_keras_hub")


@keras.saving.register_keras_serializable(package="tests")
class Mine(bert_keras.TextClassifier):
    pass


def classifier(**options):
    backbone = tiny_backbone(activation="gelu_tanh")
    return tiny_classifier(backbone, label_names=("bad", "good"), **options)


@pytest.mark.parametrize("writer", WRITERS)
def test_the_hub_reads_the_card_and_its_code_runs(writer, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "films"
    getattr(classifier(), writer)(folder)
    card = hub.ModelCard.load(folder / README)
    data = card.data.to_dict()
    assert (data["pipeline_tag"], data["tags"]) == ("text-classification", ["bert_keras", "keras"])
    library = {WRITERS[0]: "bert_keras", WRITERS[1]: "transformers", WRITERS[2]: "keras-hub"}
    assert data["library_name"] == library[writer]
    for said in ("# films", "bad, good", "BertBackbone", "1 layers", "WordPiece"):
        assert said in card.text
    monkeypatch.chdir(folder)
    blocks = re.findall("```python\n(.*?)```", card.text, re.DOTALL)
    assert len(blocks) == (1 if writer == "save_to_preset" else 2)
    for block in blocks:
        exec(block, {})
    assert "probabilities" in capsys.readouterr().out


def test_the_code_in_each_tasks_card_runs(tmp_path, monkeypatch, capsys):
    options = {"backbone": tiny_backbone(), "preprocessor": tiny_preprocessor()}
    names = ("MaskedLM", "MultipleChoice", "NextSentencePrediction", "QuestionAnswering")
    names += ("ReplacedTokenDetector", "TextEmbedder")
    models = [getattr(bert_keras, name)(**options) for name in names]
    models += [options["backbone"], bert_keras.TextClassifier(options["backbone"])]
    models += [bert_keras.TokenClassifier(num_classes=2, **options), Mine(**options)]
    for model in models:
        folder = tmp_path / type(model).__name__
        model.save_to_preset(folder)
        text = (folder / README).read_text()
        monkeypatch.chdir(folder)
        exec(re.search("```python\n(.*?)```", text, re.DOTALL)[1], {})
        assert f"`{type(model).__name__}`" in text
        assert (f"from {__name__} import Mine" in text) == (type(model) is Mine)
        is_answer = getattr(model, "preprocessor", None) is not None
        assert bool(capsys.readouterr().out) == is_answer


@pytest.mark.parametrize("writer", WRITERS)
def test_only_a_card_that_we_wrote_is_replaced(writer, tmp_path):
    write = getattr(classifier(), writer)
    write(tmp_path)
    assert MARK in (tmp_path / README).read_text()
    (tmp_path / README).write_text(f"Old. {MARK}")
    write(tmp_path)
    assert "Old." not in (tmp_path / README).read_text()
    (tmp_path / README).write_text("Mine.")
    write(tmp_path)
    assert (tmp_path / README).read_text() == "Mine."
