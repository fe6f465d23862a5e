r"""BERT from the command line.

    bert-keras info SOURCE
    bert-keras convert SOURCE TARGET --to huggingface
    bert-keras train TASK --data_dir FOLDER           (`bert-keras train TASK -h` lists its flags)
    bert-keras evaluate SOURCE FILE                   (`bert-keras evaluate -h` lists its flags)
    bert-keras compare RUN RUN ...
    bert-keras classify SOURCE "What a film!" "Never again."
    bert-keras answer SOURCE "Who lived in London?" "Ada Lovelace lived in London."
    bert-keras embed SOURCE --input texts.csv --columns body --output vectors.npy
    bert-keras tag SOURCE --input sentences.txt --output tags.jsonl
    bert-keras classify SOURCE "They won the cup." --labels sports,politics
    bert-keras rerank SOURCE "Who eats?" --input documents.txt --top_k 3
    cat reviews.csv | bert-keras classify SOURCE --columns review --input_format csv
    bert-keras serve SOURCE [SOURCE ...] --port 8080

`bert-keras vocabulary`, `pretraining-data` and `pretrain` lead from raw text to a checkpoint; `-h`
after each lists its flags. `python -m bert_keras` does the same as `bert-keras`. SOURCE is a
registered name, a folder, a hub address, a `.keras` file, the folder of a run of `train`, or a
folder written by `convert SOURCE TARGET --to onnx`, which answers without Keras. The commands that
answer are classify, tag, answer, choose, fill-mask, embed, is-next, is-replaced and rerank. Texts
come from the arguments, from `--input`, or from standard input, one per line, with tabs between
question and context, context and choices, or the texts of a pair (`--columns premise,hypothesis`).
Answers are in the order of the texts, those of `rerank` best first, one per line: JSON, CSV, or
words to read. `embed` also writes a `.npy` file of any number of texts. A text may begin with a
hyphen, after `--` also one such as `-cold`. The environment variable KERAS_BACKEND selects the
backend. `bert-keras COMMAND -h` lists the flags of a command.
"""

import functools
import importlib
import linecache
import logging
import os
import signal
import sys
import traceback
import warnings

import absl.flags

from bert_keras.answers.answerer import Option
from bert_keras.answers.catalog import ANSWERERS, answerers_of
from bert_keras.checks import check_exists, refuse_options
from bert_keras.cli import serve, sources, text_rows
from bert_keras.cli.options import LAYOUT, REQUIRED, TRACEBACK, parse, wants_help
from bert_keras.datasets.conll import is_tagged
from bert_keras.datasets.table import KINDS, format_of
from bert_keras.engine.atomic_files import remove_empty_folders
from bert_keras.version import __version__


def _command_of(cls):
    return cls.command or cls.method.replace("_", "-")


# The name of a command -> the answers that it may give; which one, the model decides.
COMMANDS = {}
for _cls in ANSWERERS:
    COMMANDS[_command_of(_cls)] = (*COMMANDS.get(_command_of(_cls), ()), _cls)
# Commands with flags of their own, and their modules, which import Keras.
WITH_OWN_FLAGS = {
    "train": "train",
    "evaluate": "evaluate",
    "compare": "compare",
    "vocabulary": "train_vocabulary",
    "pretraining-data": "make_pretraining_data",
    "pretrain": "pretrain",
}
CONVERT = (
    Option("to", tuple(sources.TARGETS), REQUIRED, "Format that `convert` writes."),
    Option("overwrite", bool, False, "Let `convert` replace what is there."),
)
FORMATS = ("text", "jsonl", "csv", "tsv", "json", "parquet")
ANSWERS = (
    Option("input", str, None, "File of texts, - for standard input."),
    Option("output", str, None, "File of answers, whole or not there; *.csv is a table."),
    Option("input_format", FORMATS, None, "Format of texts; by default from the file's name."),
    Option(
        "output_format",
        FORMATS[:3],
        None,
        "Format of answers; by default from the file's name, or JSON lines, or text in a terminal.",
    ),
    Option("columns", list, None, "Names of the fields; two make pairs for `classify`."),
    *LAYOUT,
    Option("batch_size", int, 32, "Texts in a batch.", 1),
)


def _own_flags(command):
    """Returns the flags of a command's own options, which have no value unless they are passed."""
    own = {x.name: x._replace(default=None) for cls in COMMANDS[command] for x in cls.options}
    return [*own.values()]


# Command -> what it does, its arguments, an example of those after SOURCE, and its flags.
ABOUT = {
    "info": ("Describe a model: its kind, sizes, labels and tokenizer.", "SOURCE", "", ()),
    "convert": ("Write a model in another format.", "SOURCE TARGET", "TARGET --to onnx", CONVERT),
    "serve": ("Answer over HTTP.", "SOURCE ...", "NAME=SOURCE --port 8080", serve.OPTIONS),
}
for _name, _answers in COMMANDS.items():
    _flags = *ANSWERS, *_own_flags(_name)
    _usage = "SOURCE QUERY ..." if _name == "rerank" else "SOURCE ..."
    ABOUT[_name] = _answers[0].about, _usage, _answers[0].example, _flags


def run():
    """Runs the command that the arguments of the process name."""
    command = "".join(sys.argv[1:2])
    own = WITH_OWN_FLAGS.get(command)
    module = own and importlib.import_module(f"bert_keras.cli.{own}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # The imports are done, see `prepare`.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if module:
        run_command(module.main, f"bert-keras {command}", sys.argv[2:])
        return
    text_rows.write_utf8()
    if "--traceback" not in sys.argv:  # Then the messages of libraries are wanted too.
        logging.getLogger().setLevel(logging.ERROR)
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"bert_keras\.datasets\.")
    run_command(main, "bert-keras", sys.argv[1:])


def run_command(command, name, arguments):
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
    except (ValueError, TypeError, OSError, ImportError, absl.flags.Error) as error:
        if "--traceback" in arguments or not _is_mistake(error):
            raise
        print(f"{name}: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)
    finally:
        remove_empty_folders()


def _is_mistake(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_raised = linecache.getline(last.filename, last.lineno).lstrip().startswith("raise")
    return is_raised or isinstance(error, (OSError, absl.flags.Error))


def help_of(command):
    """Returns the text of a command's help, and its flags by title, see `parse`."""
    about, _, example, flags = ABOUT[command]
    call = f"bert-keras {command} SOURCE {example}".rstrip()
    text = f"{about}\n\n    {call}\n\n`bert-keras --help` says what SOURCE and texts may be.\n"
    return text, {command: flags, "All commands": (TRACEBACK,)}


def read(arguments):
    """Returns the command in the arguments, its flags, SOURCE, and the other arguments.

    For help and for the version it prints them and exits, which needs no Keras.
    """
    name = "".join(arguments[:1])
    if name == "--version" or wants_help([name]):
        print(__version__ if name == "--version" else __doc__)
        sys.exit(0)
    if name not in ABOUT:
        names = (*ABOUT, *WITH_OWN_FLAGS)
        raise ValueError(
            f"Write a command, one of {', '.join(names)}; see --help. Received: "
            f"{' '.join(arguments) or 'nothing'}."
        )
    flags, (source, *words) = parse(name, *help_of(name), arguments[1:], ABOUT[name][1])
    return name, flags, source, words


def main(arguments):
    """Runs the command in the arguments."""
    name, flags, source, words = read(arguments)
    if name == "info":
        for fact, value in sources.description(source).items():
            print(f"{fact}: {value}")
    elif name == "convert":
        sources.convert(source, *words, flags.to, flags.overwrite)
    elif name == "serve":
        serve.serve([source, *words], flags)
    else:
        _answer(name, flags, source, words)


def _answer(name, flags, source, arguments):
    """Answers texts from the arguments, a file or standard input."""
    query = arguments.pop(0) if name == "rerank" else None
    if arguments == ["-"] and flags.input in (None, "-"):  # Standard input.
        arguments = []
    # The names of the fields that the command needs.
    fields = tuple(x.name for x in COMMANDS[name][0].fields if x.kind != "optional")
    fields = ("text",) if query is not None else fields
    columns = tuple(flags.columns or fields)
    _check_texts(name, flags, fields, columns, arguments)
    path, is_shown, output_format = _output(name, flags)
    model, answerer, options = _model(name, flags, source)
    if answerer.method == "classify" and (
        thresholds := sources.read_from_run(source, "thresholds.json")
    ):
        options.setdefault("threshold", thresholds)
    rows, layout = _rows(name, flags, columns, arguments, output_format)
    if name == "fill-mask":
        mask = model.tokenizer.mask_token or "[MASK]"
        rows = (((text.replace("[MASK]", mask),), record) for (text,), record in rows)
    show = functools.partial(print, end="\r", file=sys.stderr, flush=True)
    if is_shown or not sys.stderr.isatty():
        show = str  # Nobody watches.
    if output_format == "vectors":
        from bert_keras.search import write_vectors

        write_vectors(model, (text for (text,), _ in rows), path, progress=show, **options)
        return
    # A chunk of several batches is sorted by length. With a batch size of 1 each text is answered
    # as it comes.
    num_done, chunk_size = 0, 16 * flags.batch_size if flags.batch_size > 1 else 1
    chunk_size = sys.maxsize if query is not None else chunk_size
    with text_rows.answers_to(path, output_format, *layout) as write:
        for chunk in text_rows.chunks(rows, chunk_size):
            if query is None:
                answers = model.ask_rows(answerer.method, [row for row, _ in chunk], **options)
            else:
                question = (query, *(text for (text,), _ in chunk))
                [hits] = model.ask_rows(answerer.method, [question], **options)
                chunk = [chunk[hit["index"]] for hit in hits]
                answers = [{**x, "text": row[0]} for x, (row, _) in zip(hits, chunk, strict=True)]
            for (row, record), answer in zip(chunk, answers, strict=True):
                write(_written(answer, answerer.method, output_format), row, record)
            sys.stdout.flush()
            num_done += len(chunk)
            show(f"{num_done} answers")
    if not num_done:
        print(f"bert-keras {name}: {flags.input or 'the input'} has no texts.", file=sys.stderr)


def _rows(name, flags, columns, arguments, output_format):
    """Returns the rows in the arguments, a file or standard input, and its layout for answers."""
    if arguments:
        return text_rows.rows_of_arguments(arguments, columns, name == "choose"), ()
    input_format = flags.input_format or format_of(flags.input or "", "text")
    rule = "The lines of a text have no columns to name"
    unused = {"--columns": flags.columns} if input_format == "text" and len(columns) == 1 else {}
    refuse_options(rule, unused, text_rows.USE_CSV)
    options = {option.name: flags[option.name].value for option in LAYOUT}
    layout, is_file = (), flags.input not in (None, "-")
    is_text = is_file and input_format == "text" and flags.input_format is None
    if name == "tag" and is_text and {*options.values()} == {None} and is_tagged(flags.input):
        rows = text_rows.rows_of_tagged(flags.input)
    else:
        has_list = name == "choose"
        rows = text_rows.read_rows(flags.input, input_format, columns, has_list, **options)
    if output_format == "csv":
        options.pop("quoting")
        layout = text_rows.layout_of(flags.input, input_format, columns, **options)
    return rows, layout


def _written(answer, method, output_format):
    """Returns an answer as it is written: weights of tokens as a dict."""
    if method != "token_weights":
        return answer
    weights = dict(answer)
    return {"csv": {"weights": weights}, "text": [answer]}.get(output_format, weights)


def _check_texts(name, flags, fields, columns, arguments):
    """Refuses columns and inputs that do not fit a command."""
    if len(columns) != len(fields) and (name, len(columns)) != ("classify", 2):
        raise ValueError(
            f"--columns of `{name}` must name the fields to read as {', '.join(fields)}. Received: "
            f"{', '.join(columns)}."
        )
    if arguments and (flags.input or flags.input_format):
        raise ValueError("Texts come from the arguments or from --input. Received both.")
    if flags.input not in (None, "-"):
        check_exists(flags.input, "--input must be a file")


def _model(name, flags, source):
    """Returns a model of a source, the answerer of a command, and the options of the answer."""
    passed = {x.name: flags[x.name].value for x in _own_flags(name) if flags[x.name].present}
    model, _ = sources.load(source, COMMANDS[name], command=name)
    answerers = answerers_of(model, with_steps=True).values()
    own = [cls for cls in answerers if _command_of(cls) == name and (cls.about or passed)]
    if not own:
        methods = " and ".join(cls.method for cls in answerers if cls.about) or "nothing"
        raise ValueError(
            f"`{name}` needs a model that answers by {COMMANDS[name][0].method}. Received: "
            f"{source}, a {sources.name_of(model)}, which answers by {methods}."
        )
    takes = {cls: {option.name for option in cls.options} for cls in own}
    if "kind" in set().union(*takes.values()) and "prompt" in passed:  # A query or a document.
        passed["kind"] = passed.pop("prompt")
    answerer = next((cls for cls in own if passed.keys() <= takes[cls]), None)
    if answerer is None:
        names = ", ".join(f"--{x}" for x in sorted(takes[own[0]])) or "no options"
        received = ", ".join(f"--{x}={value}" for x, value in passed.items())
        raise ValueError(f"`{name}` of this model takes {names}. Received: {received}.")
    return model, answerer, {"batch_size": flags.batch_size, **passed}


def _output(name, flags):
    """Returns the path (`None` for standard output), whether a terminal shows it, and how."""
    path = None if flags.output == "-" else flags.output
    is_shown = path is None and sys.stdout.isatty()
    ending = os.path.splitext(path or "")[1].lower()
    default = "text" if is_shown else "jsonl"
    kinds = KINDS | ({".npy": "vectors"} if name == "embed" else {})
    output_format = flags.output_format or kinds.get(ending, ending) or default
    if output_format not in (*FORMATS[:3], "json", "vectors"):
        raise ValueError(
            "Answers are text, JSON lines or CSV, and vectors of `embed` may be .npy. Received: "
            f"--output {path}. End its name with .txt, .jsonl or .csv, or pass --output_format."
        )
    return path, is_shown, output_format
