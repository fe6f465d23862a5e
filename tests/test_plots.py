"""Pictures show the numbers that they were given, in characters that some font has."""

import re

import numpy as np
import pytest
from tiny import tiny_backbone, tiny_classifier

import bert_keras
from bert_keras import plots

pytestmark = pytest.mark.once


def test_installed_fonts_with_chinese_characters_come_after_the_user_s(monkeypatch):
    monkeypatch.setattr(plots, "FONTS", ("Not Installed", "STIXGeneral"))
    with plots._drawing() as plt:
        assert plt.rcParams["font.family"] == ["sans-serif", "STIXGeneral"]


def test_characters_that_no_font_has_are_one_warning(monkeypatch, tmp_path):
    monkeypatch.setattr(plots, "FONTS", ())
    with pytest.warns(UserWarning) as warned:
        plots.confusion_matrix([0], [1], ["好评", "差评"], path=tmp_path / "x.png")
    assert ["No installed font" in str(x.message) for x in warned] == [True]


def test_texts_are_shaded_by_the_scores_of_their_tokens():
    scores = np.array([0, 1, -0.5, 0], "float32")
    found = bert_keras.Saliency(["[CLS]", "<a>", "##b", "[SEP]"], scores, "good", 1.0, 0.5)
    view = plots.saliency([found], ["bad & ugly"])._repr_html_()
    assert "good (true label: bad &amp; ugly), logit 0.50 where all is masked, 1.00 as read" in view
    found = re.findall(r'hsl\((\d+) .*? / ([\d.]+)\)" title="[\d.-]+">(.*?)</span>', view)
    assert found[1:3] == [("215", "0.80", "&lt;a&gt;"), ("5", "0.40", "b")]


def test_tokens_are_drawn_as_they_are_written():
    drawn = plots.as_written(["[CLS]", "word", "##piece", "[SEP]"])
    assert drawn == [("[CLS]", False), ("word", False), ("piece", True), ("[SEP]", False)]
    expected = [("<s>", False), ("caf", False), ("é", True), ("bar", False), ("</s>", False)]
    assert plots.as_written(["<s>", "caf", "Ã©", "Ġbar", "</s>"]) == expected
    assert plots.as_written(["<s>", "▁caf", "é", "▁bar", "</s>"]) == expected


def panels(figure):
    return [axis for axis in figure.axes if axis.axison and axis.get_title()]


def texts_of(labels):
    return [label.get_text() for label in labels]


def test_learning_curves_are_lines_and_of_one_epoch_bars(tmp_path):
    figure = plots.learning_curves({"loss": [2.0, 1.0], "val_loss": [3.0, 4.0], "val_f1": [0.5, 1]})
    loss, f1 = panels(figure)
    assert [list(line.get_ydata()) for line in loss.lines] == [[2.0, 1.0], [3.0, 4.0]]
    assert [line.get_label() for line in f1.lines] == ["dev"]
    path = tmp_path / "new" / "x.png"
    (axis,) = panels(plots.learning_curves({"loss": [2.0], "val_loss": [3.0]}, path=path))
    assert [bar.get_height() for bar in axis.patches] == [2.0, 3.0] and path.exists()
    many = plots.learning_curves({name: [1.0, 2.0] for name in "abcdef"})
    assert [axis.get_title() for axis in panels(many)] == [*"abcdef"]
    assert len({axis.get_position().y0 for axis in panels(many)}) == 2


def test_a_confusion_matrix_counts_names_and_numbers():
    figure = plots.confusion_matrix(["b", "b", "a"], [1, 0, 0], ["a", "b"])
    assert texts_of(figure.axes[0].texts) == ["1", "0", "1", "1"]


@pytest.mark.parametrize("num_heads", [2, 4])
def test_attention_leaves_no_row_empty_and_its_rows_sum_to_1(num_heads):
    task = tiny_classifier(tiny_backbone(num_layers=num_heads, num_heads=num_heads))
    tokens, weights = plots.attention_of(task, "good film")
    assert weights.shape[-2:] == (len(tokens), len(tokens))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    figure = plots.attention(task, "good film", layer=-1)
    assert len(panels(figure)) == num_heads
    assert all(axis.axison for axis in figure.axes)


def test_similarities_are_drawn():
    for alike in (True, False):  # Without a warning of matplotlib.
        assert len(plots.similarities([0.1, 0.9], [alike] * 2).axes[0].patches) == 39
    figure = plots.similarities([0.1, 0.9, 0.8], [False, True, True])
    assert texts_of(figure.axes[0].get_legend().get_texts()) == ["alike", "others"]


def test_marked_text_is_escaped():
    found = {"text": "<A> b", "entities": [{"start": 0, "end": 3, "type": "X&", "text": "<A>"}]}
    view = plots.tags(found)._repr_html_()
    assert "&lt;A&gt; <small>X&amp;</small></mark> b" in view and "<A>" not in view
    assert "no answer" in plots.answer("a b", {"answer": "", "start": None, "end": None})
    view = plots.answer("a b", {"answer": "b", "start": 2, "end": 3, "probability": 0.5})
    assert ">b <small>0.50</small></mark>" in view
