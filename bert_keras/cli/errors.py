"""A user's mistake is printed in one line; an unforeseen error shows where it comes from."""

import linecache
import os
import sys
import traceback

from absl import flags


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
        if "--traceback" in arguments or not _is_mistake(error):
            raise
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


def _is_mistake(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_raised = linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")
    return is_raised or isinstance(error, (OSError, flags.Error))
