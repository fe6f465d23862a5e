"""Readers of data sets in the formats in which their authors published them."""

from bert_keras.datasets.choice_questions import MultipleChoiceExamples, read_multiple_choice
from bert_keras.datasets.classification import (
    ClassificationTask,
    Layout,
    read_examples,
    read_texts,
)
from bert_keras.datasets.conll import TaggedSentences, find_tag, read_conll, tag_names
from bert_keras.datasets.glue import GLUE_TASKS, detect_glue_task, get_glue_task, load_glue
from bert_keras.datasets.imdb import load_imdb
from bert_keras.datasets.labelled_texts import LabelledTexts
from bert_keras.datasets.sentiment import load_sentiment_sentences
from bert_keras.datasets.split import count_shared_texts, split_examples, split_indices
from bert_keras.datasets.squad import QuestionExample, QuestionSet, read_squad
from bert_keras.datasets.table import Table, read_rows, read_table
