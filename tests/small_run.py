"""Runs a command of an installed wheel where TensorFlow is not installed. See `run_all.py`.

python tests/small_run.py FOLDER COMMAND ...    bert_keras must be installed below FOLDER
"""

import os
import sys

# Importing a name that is None raises ImportError, as if it were not installed.
sys.modules["tensorflow"] = None
sys.modules["tensorflow_text"] = None

installed_below = os.path.realpath(sys.argv.pop(1))
sys.argv[0] = "bert-keras"  # By this name the package prepares the process, as for its command.

import bert_keras

found = os.path.realpath(bert_keras.__file__)
assert found.startswith(installed_below), found
assert os.path.exists(os.path.join(os.path.dirname(found), "py.typed"))

from bert_keras.cli import main

main.run()
