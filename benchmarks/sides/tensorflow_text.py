"""tensorflow-text's FastBertTokenizer: the text as it is, all of it at once, into ragged ids."""

import os

import tensorflow
import tensorflow_text

from sides import jobs


def tokens(job):
    with open(os.path.join(job["folder"], "vocab.txt"), encoding="utf-8") as file:
        vocabulary = file.read().splitlines()
    tokenizer = tensorflow_text.FastBertTokenizer(vocabulary, lower_case_nfd_strip_accents=True)
    (texts,) = jobs.columns(job)
    tokenize = tensorflow.function(tokenizer.tokenize)
    return lambda: tokenize(tensorflow.constant(texts)).flat_values.numpy()
