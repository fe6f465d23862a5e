"""KerasHub's preprocessing called on lists of texts."""

from sides import jobs, keras_hub


def arrays(job):
    preprocessor = keras_hub.make_classifier(job).preprocessor
    columns, size = jobs.columns(job), job["batch"]

    def run():
        for begin in range(0, len(columns[0]), size):
            part = [column[begin : begin + size] for column in columns]
            preprocessor(tuple(part) if len(part) > 1 else part[0])

    return run


def tokens(job):
    tokenizer = keras_hub.make_tokenizer(job)
    (texts,) = jobs.columns(job)
    return lambda: keras_hub.flat(tokenizer(texts))
