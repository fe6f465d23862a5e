"""Turns a model's arrays into answers for people: labels, tags and entities, spans, tokens.

NumPy is all that this package needs, and it imports nothing else of `bert_keras`: an exported
folder holds a copy beside its `runtime.py`. So imports inside it are relative.
"""

from .classes import check_threshold, choice_answer, class_answers, next_sentence_answers
from .entailment import check_hypotheses, entailment_answers
from .probabilities import activated
from .prompts import check_prompts, prompt_text, split_marker
from .ranked_texts import ranked
from .sentence_tokens import encode_sentences, needs_space
from .similarity import SIMILARITIES, l2_normalize, maxsim_matrix, similarity_matrix
from .span_search import ContextWindows, find_spans, span_answers
from .tagged_texts import tagged_texts
from .tokens import ids_of_targets, judged_tokens, likeliest_tokens
from .windows import cut_windows, document_windows
from .word_pieces import pieces_of_words, words_in_windows
from .words import find_words, join_words, with_marks
