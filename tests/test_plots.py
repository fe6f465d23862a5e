"""Pictures show the numbers that they were given, in characters that some font has."""

import numpy as np
import pytest
from tiny import tiny_classifier

import bert_keras
from bert_keras import plots

pytestmark = pytest.mark.once


def test_the_pictures_of_seeds_and_settings_leave_out_undefined_scores():
    rows = [{"pearson": None, "f1": 0.5}, {"pearson": 0.25, "f1": 1.0}]
    undefined, defined = plots.seeds(rows, first_seed=3).axes
    assert undefined.get_title() == "pearson\nnan ± nan"
    assert defined.get_title() == "f1\n0.7500 ± 0.3536"
    assert defined.lines[-1].get_xydata().tolist() == [[3, 0.5], [4, 1.0]]
    assert plots.settings({"a": {"f1": None}, "b": {"f1": 0.5}}).axes[0].get_xlabel() == "f1 on dev"


def test_shaded_texts_wrap_and_their_tokens_do_not_overlap():
    tokens = ["[CLS]", *["word", "##piece", "a"] * 30, "[SEP]"]
    with plots._drawing() as plt:
        lines = plots._lines(plt, tokens, width=5.0)
    assert len(lines) > 2
    assert [number for line in lines for _, _, number in line] == list(range(len(tokens)))
    for line in lines:
        ends = [place + size for place, size, _ in line]
        assert ends[-1] <= 5.0
        assert all(end <= next_[0] + 1e-9 for end, next_ in zip(ends, line[1:], strict=False))


def test_a_text_that_no_font_can_show_is_warned_of(monkeypatch):
    import matplotlib
    from matplotlib import font_manager

    own = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.fname.startswith(matplotlib.get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    scores = np.array([0, 1, -1, 0], "float32")
    found = bert_keras.Saliency(["[CLS]", "很", "好", "[SEP]"], scores, "positive", 1.0, 1.0)
    with pytest.warns(UserWarning, match="No installed font has the characters '好很'") as told:
        plots.saliency([found])
    # Garbage of other tests may be collected meanwhile, which warns of files left open.
    assert sum("No installed font" in str(warning.message) for warning in told) == 1
    assert plots._fonts_for("plain text") == ["DejaVu Sans"]
    # Where a font has them, it is the second choice.
    monkeypatch.setattr(plots, "_characters_of", lambda path, wanted: {"好"} & wanted)
    assert len(plots._fonts_for("好")) == 1
    monkeypatch.setattr(
        plots, "_characters_of", lambda path, wanted: wanted if "STIXGeneral" in path else set()
    )
    assert plots._fonts_for("好") == ["DejaVu Sans", "STIXGeneral"]


def test_tokens_are_drawn_as_they_are_written():
    drawn = plots.as_written(["[CLS]", "word", "##piece", "[SEP]"])
    assert drawn == [("[CLS]", False), ("word", False), ("piece", True), ("[SEP]", False)]
    expected = [("<s>", False), ("caf", False), ("é", True), ("bar", False), ("</s>", False)]
    assert plots.as_written(["<s>", "caf", "Ã©", "Ġbar", "</s>"]) == expected
    assert plots.as_written(["<s>", "▁caf", "é", "▁bar", "</s>"]) == expected


def panels(figure):
    return [axis for axis in figure.axes if axis.axison and axis.get_title()]


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
    assert [text.get_text() for text in figure.axes[0].texts] == ["1", "0", "1", "1"]


@pytest.mark.parametrize("num_heads", [2, 4])
def test_attention_leaves_no_row_empty_and_its_rows_sum_to_1(num_heads):
    task = tiny_classifier(
        bert_keras.BertBackbone(30, 4, num_heads, 8, 8) if num_heads == 4 else None
    )
    tokens, weights = plots.attention_of(task, "good film")
    assert weights.shape[-2:] == (len(tokens), len(tokens))
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6)
    figure = plots.attention(task, "good film", layer=-1)
    assert len(panels(figure)) == num_heads
    assert all(axis.axison for axis in figure.axes)


def test_similarities_are_drawn():
    figure = plots.similarities([0.1, 0.9, 0.8], [False, True, True])
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == [
        "alike",
        "others",
    ]


def test_marked_text_is_escaped():
    found = {"text": "<A> b", "entities": [{"start": 0, "end": 3, "type": "X&", "text": "<A>"}]}
    view = plots.tags(found)._repr_html_()
    assert "&lt;A&gt; <small>X&amp;</small></mark> b" in view and "<A>" not in view
    assert "no answer" in plots.answer("a b", {"answer": "", "start": None, "end": None})
    view = plots.answer("a b", {"answer": "b", "start": 2, "end": 3, "probability": 0.5})
    assert ">b <small>0.50</small></mark>" in view
