"""A room: readers of data sets in the formats in which their authors published them."""

from bert_keras.datasets.choice_questions import MultipleChoiceExamples as MultipleChoiceExamples
from bert_keras.datasets.choice_questions import read_multiple_choice as read_multiple_choice
from bert_keras.datasets.classification import ClassificationTask as ClassificationTask
from bert_keras.datasets.classification import Layout as Layout
from bert_keras.datasets.classification import read_examples as read_examples
from bert_keras.datasets.classification import read_texts as read_texts
from bert_keras.datasets.conll import TaggedSentences as TaggedSentences
from bert_keras.datasets.conll import is_tagged as is_tagged
from bert_keras.datasets.conll import read_conll as read_conll
from bert_keras.datasets.conll import tag_layout as tag_layout
from bert_keras.datasets.conll import tag_names as tag_names
from bert_keras.datasets.glue import GLUE_TASKS as GLUE_TASKS
from bert_keras.datasets.glue import detect_glue_task as detect_glue_task
from bert_keras.datasets.glue import get_glue_task as get_glue_task
from bert_keras.datasets.glue import load_glue as load_glue
from bert_keras.datasets.labelled_texts import LabelledTexts as LabelledTexts
from bert_keras.datasets.reviews import load_sentiment_sentences as load_sentiment_sentences
from bert_keras.datasets.split import count_shared_texts as count_shared_texts
from bert_keras.datasets.split import split_examples as split_examples
from bert_keras.datasets.split import split_indices as split_indices
from bert_keras.datasets.squad import QuestionExample as QuestionExample
from bert_keras.datasets.squad import QuestionSet as QuestionSet
from bert_keras.datasets.squad import read_squad as read_squad
from bert_keras.datasets.table import read_records as read_records
