"""A user's mistake is told in one line; an error that nobody foresaw shows where it came from."""

import functools
import linecache
import os
import sys
import traceback

from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_bool("traceback", False, "Whether a mistake shows where in the code it was found.")


def run(main):
    """Runs a script's `main(argv)` with absl's flags, and ends it with 2 after a mistake.

    A mistake is a `ValueError`, `TypeError` or `ImportError` that some code raises by a statement,
    as checks do, or an `OSError`.
    """
    telling(lambda argv: app.run(main, argv, flags_parser=FLAGS))(sys.argv)


def run_alone(command, argv):
    """Runs a command that parses its own flags, with the same end after a mistake.

    Args:
        command: function of the arguments after its name.
        argv: list of str, the program, the command's name, and its arguments.
    """
    FLAGS["traceback"].value = "--traceback" in argv
    program = f"{os.path.basename(argv[0])} {argv[1]}"
    telling(lambda argv: command(argv[1:]))([program, *argv[2:]])


def telling(main):
    """Returns a function that prints a mistake, and ends the process with 2."""

    @functools.wraps(main)
    def told(argv):
        try:
            return main(argv)
        except BrokenPipeError:  # Whoever reads the answers has had enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            sys.exit(130)  # As a shell says of what Ctrl-C has ended.
        except (ValueError, TypeError, OSError, ImportError, flags.Error) as error:
            if FLAGS["traceback"].value or not _is_mistake(error):
                raise
            name = os.path.basename(argv[0])
            print(f"{name}:", " ".join(str(error).split()), file=sys.stderr)
            sys.exit(2)

    return told


def _is_mistake(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_raised = linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")
    return is_raised or isinstance(error, (OSError, flags.Error))
