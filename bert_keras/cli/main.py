r"""BERT from the command line.

    bert-keras info SOURCE
    bert-keras convert SOURCE TARGET --to huggingface
    bert-keras train TASK --data_dir FOLDER           (`bert-keras train TASK -h` lists its flags)
    bert-keras evaluate SOURCE FILE                   (`bert-keras evaluate -h` lists its flags)
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
words to read. `embed` also writes `.npy` and `.npz` files of any number of texts; after a kill the
same command continues. Arguments after `--` may begin with a hyphen. The environment variable
KERAS_BACKEND selects the backend.
"""

import difflib
import functools
import importlib
import inspect
import logging
import os
import subprocess
import sys
import warnings
from typing import NamedTuple

import bert_keras
from bert_keras.checks import check_exists, refuse_unused
from bert_keras.cli import marked_rows, mistakes, serve, sources, start, text_rows
from bert_keras.cli.options import LAYOUT, TRACEBACK, Option, parse_all, wants_help, wants_traceback
from bert_keras.cli.start import WITH_OWN_FLAGS
from bert_keras.export import runtime


class Command(NamedTuple):
    """A task's method as a command.

    Attributes:
        task: str, the class.
        method: str.
        about: str, what the command does, for its `-h`.
        example: str, its arguments after SOURCE, for its `-h`.
        columns: tuple of str, the fields of a row that it takes.
        own: tuple of str, the flags in `OF_SOME` that it takes.
    """

    task: str
    method: str
    about: str
    example: str
    columns: tuple[str, ...] = ("text",)
    own: tuple[str, ...] = ()


COMMANDS = {
    "classify": Command(
        "TextClassifier",
        "classify",
        "Give each text, or pair of texts, its class, its labels or its score. For the folder of a "
        "run with several labels per text, the thresholds are those that `train` tuned.",
        '"What a film!" "Never again."',
        own=("labels", "hypothesis", "multi_label"),
    ),
    "tag": Command(
        "TokenClassifier",
        "tag",
        "Tag the words of each text: named entities, or parts of speech.",
        '"Ada Lovelace lived in London."',
    ),
    "answer": Command(
        "QuestionAnswering",
        "answer",
        "Answer each question with a part of its context.",
        '"Who lived in London?" "Ada Lovelace lived in London."',
        ("question", "context"),
        ("top_k",),
    ),
    "choose": Command(
        "MultipleChoice",
        "choose",
        "Pick the likeliest choice for each context.",
        '"She was tired." "She slept." "She ran."',
        ("context", "choices"),
    ),
    "fill-mask": Command(
        "MaskedLM",
        "fill_mask",
        "Fill each [MASK] with the likeliest tokens.",
        '"She opened the [MASK]." --top_k 3',
        own=("top_k",),
    ),
    "embed": Command(
        "TextEmbedder",
        "embed",
        "Turn each text into a vector, into weights of tokens, or into a vector for each token.",
        "--input texts.csv --columns body --output vectors.npy",
        own=("prompt", "sparse", "top_k"),
    ),
    "is-next": Command(
        "NextSentencePrediction",
        "is_next",
        "Say whether the second text follows the first.",
        '"She opened the door." "The room was empty."',
        ("first", "second"),
    ),
    "is-replaced": Command(
        "ReplacedTokenDetector",
        "is_replaced",
        "Say for each token whether it seems out of place.",
        '"She drank the door."',
    ),
    "rerank": Command(
        "Reranker",
        "rank",
        "Order texts by how well they answer a query, best first.",
        '"Who eats?" --input documents.txt --top_k 3',
        own=("prompt", "top_k"),
    ),
}
CONVERT = (
    Option("to", tuple(sources.TARGETS), None, "Format that `convert` writes."),
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
    Option(
        "columns", str, None, "Names of the fields; two make pairs for `classify`.", many="list"
    ),
    *LAYOUT,
    Option("batch_size", int, 32, "Texts in a batch.", 1),
    Option(
        "prompt",
        str,
        None,
        "Name or text of what goes before each text, for `embed`, or each query, for `rerank`.",
    ),
    Option("sparse", bool, False, "Weights of tokens instead of a vector, for `embed`: SPLADE."),
    Option(
        "top_k",
        int,
        None,
        "Number of answers, for `answer`, `fill-mask` and `rerank`, or of tokens, for `embed` with "
        "sparse vectors.",
        1,
    ),
    Option(
        "labels",
        str,
        None,
        "Labels by which a model of entailment classifies texts, for `classify`.",
        many="list",
    ),
    Option("hypothesis", str, None, "What a label says of a text, such as 'This example is {}.'."),
    Option("multi_label", bool, None, "Whether several of the --labels may be right."),
)
INFO = (
    Option("load", bool, False, "Load the weights for `info` too, and say which parts they lack."),
)
GROUPS = {
    "Commands that answer": ANSWERS,
    "info": INFO,
    "convert": CONVERT,
    "serve": serve.OPTIONS,
    "All commands": (TRACEBACK,),
}
# The flags of `ANSWERS` that not every command takes.
OF_SOME = ("prompt", "sparse", "top_k", "labels", "hypothesis", "multi_label")
# What the help of a command says above its flags: what it does, and its arguments after SOURCE.
HELP = {
    "info": (
        "Describe a model as its files do: its kind, its sizes, its labels, its tokenizer. With "
        "--load it is loaded too, which takes seconds.",
        "[--load]",
    ),
    "convert": (
        "Write a model in another format, read it again, and compare the outputs.",
        "TARGET --to huggingface",
    ),
    "serve": (
        "Answer over HTTP. Each SOURCE may be NAME=SOURCE.",
        "[SOURCE ...] --port 8080",
    ),
    **{name: (command.about, command.example) for name, command in COMMANDS.items()},
}
# The flags that each command takes besides `--traceback`.
TAKEN = {
    "info": INFO,
    "convert": CONVERT,
    "serve": serve.OPTIONS,
    **dict.fromkeys(COMMANDS, ANSWERS),
}


def run():
    """Runs the command that the arguments of the process name."""
    start.started()
    command = "".join(sys.argv[1:2])
    if command in WITH_OWN_FLAGS:
        module = importlib.import_module(f"bert_keras.cli.{WITH_OWN_FLAGS[command]}")
        mistakes.run(module.main, f"bert-keras {command}", sys.argv[2:])
        return
    text_rows.read_and_write_utf8()
    if not wants_traceback(sys.argv):  # Then the messages of libraries are wanted too.
        logging.getLogger().setLevel(logging.ERROR)
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", module=r"bert_keras\.datasets\.")
    mistakes.run(main, "bert-keras", sys.argv[1:])


def help_of(command):
    """Returns the text of a command's help, and its flags by title, see `parse_all`."""
    about, example = HELP[command]
    unused = () if command not in COMMANDS else {*OF_SOME} - {*COMMANDS[command].own}
    text = (
        f"{about}\n\n    {f'bert-keras {command} SOURCE {example}'.rstrip()}\n\n"
        "SOURCE is a registered name, a folder, a hub address, a `.keras` file or the folder of a "
        "run of `train`.\n"
    )
    if command in COMMANDS:
        text += (
            "Texts come from the arguments, from --input, or from standard input, one per line.\n"
        )
    flags = [option for option in TAKEN[command] if option.name not in unused]
    return text, {command: flags, "All commands": (TRACEBACK,)}


def main(arguments):
    """Runs the command in the arguments."""
    name = "".join(arguments[:1])
    if name in TAKEN and wants_help(arguments):
        parse_all(f"bert-keras {name}", *help_of(name), arguments)
    flags, words = parse_all("bert-keras", __doc__, GROUPS, arguments)
    command, source, *more_words = [*words, None, None][: max(2, len(words))]
    names = ("info", "convert", "serve", *WITH_OWN_FLAGS, *COMMANDS)
    if command not in TAKEN or source is None:
        close = difflib.get_close_matches(command or "", names, 1)
        hint = f" Did you mean {close[0]}?" if close and command not in names else ""
        raise ValueError(
            f"Write a command, one of {', '.join(names)}, and a SOURCE; see --help. "
            f"Received: {' '.join(words) or 'nothing'}.{hint}"
        )
    _check_flags(command, flags)
    if command == "info":
        if more_words:
            raise ValueError(f"Write `info SOURCE`. Received also: {' '.join(more_words)}.")
        _describe(source, flags.load)
    elif command == "convert":
        _convert(flags, source, *more_words)
    elif command == "serve":
        serve.serve([source, *more_words], flags)
    else:
        _answer(command, flags, source, more_words)


def _describe(source, loads):
    """Prints what the files of a model say about it, or, if that is too little, the model."""
    from bert_keras.cli import description

    facts = None
    if not (loads or runtime.is_exported(source)):
        facts = description.of_files(source)
    is_loaded = facts is None and not runtime.is_exported(source)
    if is_loaded and sys.modules.get("keras", "later") is None:
        # This process has begun without Keras, see `start.prepare`.
        program = [sys.executable, "-m", "bert_keras", "info", source, "--load"]
        program += ["--traceback"] if "--traceback" in sys.argv else []
        # The standard error that the user sees: this process has silenced its own.
        sys.exit(subprocess.call(program, stderr=sys.stderr))
    for name, value in (facts or sources.description(source)).items():
        print(f"{name}: {value}")


def _check_flags(command, flags):
    """Refuses the flags of other commands."""
    names = sorted(option.name for option in TAKEN[command])
    wrong = [name for name in flags if flags[name].present and name not in (*names, "traceback")]
    if wrong:
        raise ValueError(
            f"`{command}` takes {', '.join(f'--{name}' for name in names) or 'no flags'}. "
            f"Received: --{', --'.join(wrong)}."
        )


def _convert(flags, source, target=None, *more_words):
    if target is None or more_words or flags.to is None:
        raise ValueError(
            f"Write `convert SOURCE TARGET --to FORMAT`, one of {', '.join(sources.TARGETS)}."
        )
    if os.path.exists(target) and not flags.overwrite:
        raise FileExistsError(f"{target} exists. --overwrite replaces it.")
    report, difference = sources.convert(source, target, flags.to)
    print(*report, f"Wrote {target}; its outputs differ by {difference:.1e} at most.", sep="\n")


def _answer(name, flags, source, arguments):
    """Answers texts from the arguments, a file or standard input."""
    query = None
    if name == "rerank":
        if not arguments:
            raise ValueError("Write `rerank SOURCE QUERY`, then texts, or --input. Received none.")
        query, *arguments = arguments
    columns = tuple(flags.columns or COMMANDS[name].columns)
    _check_texts(name, flags, columns, arguments)
    path, is_shown, output_format = _output(name, flags)
    model, method = _model(name, flags, source)
    ask = _zero_shot(name, model, flags)
    if output_format == "vectors":
        from bert_keras.search import write_vectors

        ask = functools.partial(write_vectors, model)
    options = _options(name, flags, ask or getattr(model, method))
    if name == "classify" and ask is None and (thresholds := sources.thresholds_of(source)):
        options["threshold"] = thresholds
    rows = _rows(name, flags, columns, arguments)
    if name == "fill-mask":
        mask = (getattr(model, "tokenizer", None) or model).mask_token or "[MASK]"
        rows = (row.replaced("[MASK]", mask) for row in rows)
    if query is not None:
        rows = list(rows)
        with text_rows.answers_to(path, output_format) as write:
            for hit in model.rank(query, [text for (text,) in rows], **options):
                row = rows[hit["index"]]
                write({**hit, "text": row[0]}, row)
        return
    has_progress = not is_shown and sys.stderr.isatty()
    if output_format == "vectors":
        show = functools.partial(print, "\r", sep="", end="", file=sys.stderr, flush=True)
        ask((text for (text,) in rows), path, progress=show if has_progress else None, **options)
        if has_progress:
            print(file=sys.stderr)
        return
    # A chunk of several batches is sorted by length. With a batch size of 1 each text is answered
    # as it comes.
    num_done, chunk_size = 0, 16 * flags.batch_size if flags.batch_size > 1 else 1
    with text_rows.answers_to(path, output_format) as write:
        for chunk in text_rows.chunks(rows, chunk_size):
            if ask is not None:
                answers = ask([text for (text,) in chunk], **options)
            else:
                answers = runtime.ask(model, method, chunk, **options)
            for row, answer in zip(chunk, answers, strict=True):
                write(_written(answer, method, output_format), row)
            sys.stdout.flush()
            num_done += len(chunk)
            if has_progress:
                print(f"\r{num_done} answers", end="", file=sys.stderr, flush=True)
    if has_progress:
        print(file=sys.stderr)


def _options(name, flags, ask):
    """Returns the flags as arguments of a function; refuses those that it does not take."""
    options = {"batch_size": flags.batch_size}
    options |= {x: flags[x].value for x in ("prompt", "top_k") if flags[x].value is not None}
    parameters = inspect.signature(ask).parameters
    if "prompt" in options and "kind" in parameters:  # A query or a document.
        options["kind"] = options.pop("prompt")
    if unknown := options.keys() - parameters.keys():
        takes = "takes no prompt" if "prompt" in unknown else "gives one answer"
        received = ", ".join(f"--{x}={options[x]}" for x in sorted(unknown))
        raise ValueError(f"`{name}` {takes}. Received: {received}.")
    return options


def _rows(name, flags, columns, arguments):
    """Returns an iterable of `Row` from the arguments, a file or standard input."""
    if arguments:
        return text_rows.rows_of_arguments(arguments, columns, name == "choose")
    input_format = flags.input_format or text_rows.format_of(flags.input, "text")
    layout, rows = (flags.separator, flags.quoting), None
    if not (flags.columns or flags.input_format or any(x is not None for x in layout)):
        rows = marked_rows.read_rows(name, flags.input, input_format, columns)
    if rows is None:
        has_list = name == "choose"
        rows = text_rows.read_rows(flags.input, input_format, columns, has_list, *layout)
    return rows


def _written(answer, method, output_format):
    """Returns an answer as it is written: vectors as lists, weights of tokens as a dict."""
    if method == "embed":
        return answer.tolist()
    if method != "token_weights":
        return answer
    weights = dict(answer)
    return {"csv": {"weights": weights}, "text": [answer]}.get(output_format, weights)


def _zero_shot(name, model, flags):
    """Returns what classifies texts by `--labels`, or `None` without them."""
    if flags.labels is None:
        options = {f"--{x}": flags[x].value for x in ("hypothesis", "multi_label")}
        advice = "Name them, such as --labels sports,politics."
        refuse_unused("--hypothesis and --multi_label are for --labels", options, advice)
        return None
    if name != "classify" or len(flags.columns or ()) > 1:
        rule = f"--labels is for `classify` of single texts, not for this `{name}`"
        refuse_unused(rule, {"--labels": flags.labels})
    if isinstance(model, runtime.ExportedTask):
        method = model.zero_shot
    else:
        method = bert_keras.ZeroShotClassifier(model).classify
    names = [x for x in ("hypothesis", "multi_label") if flags[x].value is not None]
    return functools.partial(method, labels=flags.labels, **{x: flags[x].value for x in names})


def _check_texts(name, flags, columns, arguments):
    """Refuses columns and inputs that do not fit a command."""
    fields = COMMANDS[name].columns
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
    """Returns a model of a source, and the method by which it answers a command."""
    command = COMMANDS[name]
    if name != "embed":
        refuse_unused(
            f"--sparse is for `embed`, not for `{name}`", {"--sparse": flags.sparse or None}
        )
    if flags.sparse:
        command = command._replace(task="SparseTextEmbedder", method="token_weights")
    model, warned = sources.load(source, command.task)
    sources.refuse_untrained(source, name, warned)
    answers = runtime.answers_of(model)
    is_sparse = name == "embed" and "token_weights" in answers
    method = "token_weights" if is_sparse else command.method
    is_exported = isinstance(model, runtime.ExportedTask)  # It refuses other methods itself.
    if not is_exported and method not in answers:
        raise ValueError(
            f"`{name}` is for a {command.task}. Received: {source}, a {type(model).__name__}."
        )
    return model, method


def _output(name, flags):
    """Returns the path (`None` for standard output), whether a terminal shows it, and how."""
    path = None if flags.output == "-" else flags.output
    is_shown = path is None and sys.stdout.isatty()
    if name == "embed" and not flags.output_format and str(path).endswith((".npy", ".npz")):
        return path, is_shown, "vectors"
    output_format = flags.output_format
    output_format = output_format or text_rows.format_of(path, "text" if is_shown else "jsonl")
    if output_format in ("tsv", "parquet"):
        raise ValueError(f"Answers are text, JSON lines or CSV. Received: --output {path}.")
    return path, is_shown, output_format
