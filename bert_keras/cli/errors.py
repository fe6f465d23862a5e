"""A user's mistake is printed in one line; an unforeseen error shows where it comes from."""

import linecache
import os
import re
import sys
import traceback

from absl import flags

from bert_keras.cli.options import wants_traceback

# Arguments of the readers, as their messages name them, that are flags here. In quotation marks
# they are a user's words.
_ARGUMENTS = re.compile(
    r"(?<![\w'\"-])((?:label|word|tag)_column|(?<=`)(?:separator|quoting|encoding))\b"
)


def run(command, name, arguments):
    """Runs a command; after a mistake the process prints one line and ends with 2.

    A mistake is a `ValueError`, `TypeError` or `ImportError` that a `raise` statement raises, as in
    checks, or an `OSError`, or a wrong flag. With `--traceback` it is raised like other errors.

    Args:
        command: function of the arguments.
        name: str, the command's name in the message.
        arguments: list of str.
    """
    try:
        return command(arguments)
    except BrokenPipeError:  # The reader of the answers has closed the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit(130)  # The status that shells report after Ctrl-C.
    except (ValueError, TypeError, OSError, ImportError, flags.Error) as error:
        if wants_traceback(arguments) or not _is_mistake(error):
            raise
        message = _ARGUMENTS.sub(r"--\1", " ".join(str(error).split()))
        print(f"{name}: {message}", file=sys.stderr)
        sys.exit(2)


def _is_mistake(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_raised = linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")
    return is_raised or isinstance(error, (OSError, flags.Error))
