"""`python -m bert_keras`, see `bert_keras.cli.main`."""

from bert_keras.cli.main import run

run()
