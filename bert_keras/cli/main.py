r"""BERT from the command line.

    bert-keras info SOURCE
    bert-keras convert SOURCE TARGET --to huggingface
    bert-keras train TASK --data_dir FOLDER           (`bert-keras train TASK -h` has its flags)
    bert-keras classify SOURCE "What a film!" "Never again."
    bert-keras answer SOURCE "Who lived in London?" "Ada Lovelace lived in London."
    bert-keras tag SOURCE --input sentences.txt --output tags.jsonl
    cat reviews.csv | bert-keras classify SOURCE --columns review --input_format csv
    bert-keras serve SOURCE [SOURCE ...] --port 8080

`bert-keras vocabulary`, `pretraining-data` and `pretrain` lead from raw text to a checkpoint; each
tells its flags by `-h`. `python -m bert_keras` is the same. SOURCE is a registered name, a folder,
a hub address, a `.keras` file, or a folder that `convert SOURCE TARGET --to onnx` wrote, which is
answered without Keras. Commands that answer: classify, tag, answer, choose, fill-mask, embed,
is-next, is-replaced. Texts come from the arguments, from `--input`, or from standard input, a line
each, with tabs between question and context, context and choices, or the texts of a pair
(`--columns premise,hypothesis`). Answers come in the order of the texts, a line each: JSON, CSV, or
words to read. What follows `--` may begin with a hyphen. KERAS_BACKEND chooses the backend.
"""

import difflib
import importlib
import inspect
import logging
import os
import sys
import warnings
from typing import NamedTuple

from absl import flags

from bert_keras.cli import mistakes, serve, sources, start
from bert_keras.cli import text_rows as texts
from bert_keras.export import runtime

FLAGS = flags.FLAGS


class Command(NamedTuple):
    """A task's method as a command, and the fields of a row that it takes."""

    task: str
    method: str
    columns: tuple[str, ...] = ("text",)


COMMANDS = {
    "classify": Command("TextClassifier", "classify"),
    "tag": Command("TokenClassifier", "tag"),
    "answer": Command("QuestionAnswering", "answer", ("question", "context")),
    "choose": Command("MultipleChoice", "choose", ("context", "choices")),
    "fill-mask": Command("MaskedLM", "fill_mask"),
    "embed": Command("TextEmbedder", "embed"),
    "is-next": Command("NextSentencePrediction", "is_next", ("first", "second")),
    "is-replaced": Command("ReplacedTokenDetector", "is_replaced"),
}

# Of the flags here, those of `convert`; the others are for commands that answer.
_OF_CONVERT = ("to", "overwrite")
# Commands that take flags of their own, each by a module of its name, which imports Keras.
WITH_OWN_FLAGS = ("train", "vocabulary", "pretraining-data", "pretrain")


def define_flags():
    """Defines the flags, which a program that imports this module may have of its own."""
    flags.DEFINE_enum("to", None, sources.TARGETS, "What `convert` writes.")
    flags.DEFINE_bool("overwrite", False, "Whether `convert` may replace what is there.")
    flags.DEFINE_string("input", None, "File of texts, `-` for standard input.")
    flags.DEFINE_string("output", None, "File of answers, whole or not there; *.csv is a table.")
    flags.DEFINE_enum(
        "input_format", None, ["text", "jsonl", "csv", "tsv"], "By default as the file's name ends."
    )
    flags.DEFINE_enum(
        "output_format",
        None,
        ["text", "jsonl", "csv"],
        "By default as the file's name ends; JSON lines, or text for a terminal.",
    )
    flags.DEFINE_list("columns", None, "Names of the fields; two for `classify` make pairs.")
    flags.DEFINE_integer("batch_size", 32, "Texts at once.", 1)
    flags.DEFINE_integer("top_k", None, "Answers wanted, for `answer` and `fill-mask`.", 1)
    serve.define_flags()
    flags.adopt_module_key_flags(serve)
    flags.adopt_module_key_flags(mistakes)


def run():
    """Runs the command that the arguments of the process name."""
    start.started()
    if sys.argv[1:2] and sys.argv[1] in WITH_OWN_FLAGS:
        name = sys.argv[1].replace("-", "_")
        own = importlib.import_module(f"bert_keras.cli.{name}")
        mistakes.run_alone(own.main, sys.argv)
        return
    sys.argv = ["--help" if argument == "-h" else argument for argument in sys.argv]
    sys.modules["__main__"].__doc__ = __doc__
    texts.read_and_write_utf8()
    define_flags()
    for flag in FLAGS.get_key_flags_for_module(sys.modules[__name__]):
        FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    FLAGS.set_gnu_getopt(True)
    try:
        mistakes.run(_run_quietly)
    except SystemExit as end:  # absl ends with 1 after help too.
        sys.exit(0 if "--help" in sys.argv and end.code == 1 else end.code)


def _run_quietly(argv):
    """Runs a command; what libraries tell of themselves is heard with `--traceback`."""
    if not FLAGS.traceback:
        logging.getLogger().setLevel(logging.ERROR)
        warnings.simplefilter("ignore")
    main(argv)


def main(argv):
    """Runs a command."""
    _run(*argv[1:])


def _run(command=None, source=None, *arguments):
    known = ("info", "convert", "serve", *WITH_OWN_FLAGS, *COMMANDS)
    if command not in known or source is None:
        close = difflib.get_close_matches(command or "", known, 1)
        meant = f" Did you mean {close[0]}?" if close and command not in known else ""
        raise ValueError(
            f"Write a command, one of {', '.join(known)}, and a SOURCE; --help tells more. "
            f"Received: {' '.join(filter(None, (command, source))) or 'nothing'}.{meant}"
        )
    _check_flags(command)
    if command == "info":
        if arguments:
            raise ValueError(f"Write `info SOURCE`. Received besides: {' '.join(arguments)}.")
        for name, value in sources.description(source).items():
            print(f"{name}: {value}")
    elif command == "convert":
        _convert(source, *arguments)
    elif command == "serve":
        serve.serve([source, *arguments])
    else:
        _answer(command, source, arguments)


def _check_flags(command):
    """Raises `ValueError` for a flag that another command takes."""
    modules = {module: FLAGS.get_flags_for_module(module) for module in (__name__, serve.__name__)}
    own, of_server = ({flag.name: flag for flag in found} for found in modules.values())
    taken = {"info": (), "convert": _OF_CONVERT, "serve": of_server}
    taken = taken.get(command, own.keys() - {*_OF_CONVERT})
    given = [name for name, flag in {**own, **of_server}.items() if flag.present]
    wrong = [name for name in given if name not in taken]
    if wrong:
        raise ValueError(
            f"`{command}` takes {', '.join(f'--{x}' for x in sorted(taken)) or 'no flags'}. "
            f"Received: --{', --'.join(wrong)}."
        )


def _convert(source, target=None, *others):
    if target is None or others or FLAGS.to is None:
        raise ValueError(
            f"Write `convert SOURCE TARGET --to FORMAT`, one of {', '.join(sources.TARGETS)}."
        )
    if os.path.exists(target) and not FLAGS.overwrite:
        raise FileExistsError(f"{target} is there. --overwrite replaces it.")
    told, difference = sources.convert(source, target, FLAGS.to)
    print(*told, f"Wrote {target}; its outputs differ by {difference:.1e} at most.", sep="\n")


def _answer(name, source, arguments):
    command = COMMANDS[name]
    columns = tuple(FLAGS.columns or command.columns)
    is_pair = name == "classify" and len(columns) == 2
    has_list = name == "choose"
    if len(columns) != len(command.columns) and not is_pair:
        raise ValueError(
            f"--columns of `{name}` names what it takes for {', '.join(command.columns)}. "
            f"Received: {', '.join(columns)}."
        )
    if arguments and (FLAGS.input or FLAGS.input_format):
        raise ValueError("Texts come from the arguments or from --input. Received both.")
    if FLAGS.input not in (None, "-") and not os.path.exists(FLAGS.input):
        raise FileNotFoundError(f"--input names {FLAGS.input!r}, which is not there.")
    output, is_shown, kind_of_answers = _output()
    model, warned = sources.load(source, command.task)
    if warned:
        raise ValueError(f"{source} has not all that `{name}` needs. {warned[0]}")
    is_exported = isinstance(model, runtime.ExportedTask)  # Which tells by itself.
    if not is_exported and command.method not in runtime.answers_of(model):
        raise ValueError(
            f"`{name}` is for a {command.task}. Received: {source}, a {type(model).__name__}."
        )
    answer = getattr(model, command.method)
    options = {"batch_size": FLAGS.batch_size}
    options |= {} if FLAGS.top_k is None else {"top_k": FLAGS.top_k}
    if not options.keys() <= inspect.signature(answer).parameters.keys():
        raise ValueError(f"`{name}` gives one answer. Received: --top_k={FLAGS.top_k}.")
    if arguments:
        rows = texts.rows_of_arguments(arguments, columns, has_list)
    else:
        kind = FLAGS.input_format or texts.format_of(FLAGS.input, "text")
        rows = texts.read_rows(FLAGS.input, kind, columns, has_list)
    if name == "fill-mask":
        mask = (getattr(model, "tokenizer", None) or model).mask_token or "[MASK]"
        rows = ((text.replace("[MASK]", mask),) for (text,) in rows)
    is_told = not is_shown and sys.stderr.isatty()
    # Several batches at once are sorted by length; one by one, each text is answered as it comes.
    done, at_once = 0, 16 * FLAGS.batch_size if FLAGS.batch_size > 1 else 1
    with texts.answers_to(output, kind_of_answers) as write:
        for chunk in texts.chunks(rows, at_once):
            answers = runtime.ask(model, command.method, chunk, **options)
            for row, each in zip(chunk, answers, strict=True):
                write(each.tolist() if name == "embed" else each, row)
            sys.stdout.flush()
            done += len(chunk)
            if is_told:
                print(f"\r{done} answers", end="", file=sys.stderr, flush=True)
    if is_told:
        print(file=sys.stderr)


def _output():
    """Returns where answers go, `None` for standard output, whether a person sees them, and how."""
    path = None if FLAGS.output == "-" else FLAGS.output
    is_shown = path is None and sys.stdout.isatty()
    kind = FLAGS.output_format or texts.format_of(path, "text" if is_shown else "jsonl")
    if kind == "tsv":
        raise ValueError(f"Answers are text, JSON lines or CSV. Received: --output {path}.")
    return path, is_shown, kind
