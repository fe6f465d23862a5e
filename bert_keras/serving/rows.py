"""What rows of texts a method takes, and how much of them: checked before any compute."""

# A method of a task, and the fields of a row that it takes.
METHODS = {
    "classify": ("text",),
    "tag": ("text",),
    "answer": ("question", "context"),
    "choose": ("context", "choices"),
    "fill_mask": ("text",),
    "embed": ("text",),
    "is_next": ("first", "second"),
    "is_replaced": ("text",),
}
# What takes a text or a pair: a classifier, and the instruments of `inside`.
TAKE_PAIRS = ("classify", "saliency", "attention")
# Answers to one mask or question, and characters that all candidates for masks take with their
# sentences: a short body may ask for much.
MOST_ANSWERS, MOST_CANDIDATES = 100, 2**22


class Refusal(Exception):
    """An answer that is not given: the status, the reason, and headers of the response."""

    def __init__(self, status, message, **headers):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def check_number(rows, settings):
    """Raises `Refusal`, 422 or 413, for no rows or more than may wait."""
    if not rows:
        raise Refusal(422, "inputs: at least one text is needed. Received: none.")
    if len(rows) > settings.max_waiting:
        most = settings.max_waiting
        raise Refusal(413, f"inputs: at most {most} texts at once. Received: {len(rows)}.")


def check_rows(served, method, rows, settings, top_k=5, **options):
    """Raises where rows are not those of a method, or more than a server answers.

    Args:
        served: `Served`.
        method: str, a key of `METHODS`, or one of `TAKE_PAIRS`.
        rows: list of tuples of str.
        settings: `Settings`.
        top_k: answers that are wanted of a mask or a question.
        **options: what is checked already.

    Raises:
        Refusal: 422, rows or `top_k` do not fit; 413, they are too long or too many.
    """
    check_number(rows, settings)
    fields = METHODS.get(method, ("text",))
    # Choices are examples each, of which a batch holds so many.
    most = {"choose": 1 + settings.max_batch} | dict.fromkeys(TAKE_PAIRS, 2)
    most = most.get(method, len(fields))
    for place, row in enumerate(rows):
        if not len(fields) <= len(row) <= most or len(row) != len(rows[0]):
            raise Refusal(
                422,
                f"rows[{place}]: {method} takes {', '.join(fields)}, {len(fields)} to {most} texts,"
                f" of all rows as many. Received: {len(row)} texts.",
            )
        length = sum(map(len, row))
        if length > settings.max_text:
            raise Refusal(
                413,
                f"rows[{place}]: at most {settings.max_text} characters. Received: {length}.",
            )
    try:
        "".join(text for row in rows for text in row).encode()
    except UnicodeEncodeError as error:
        raise Refusal(422, f"inputs: texts must be whole characters. Received: {error}.") from error
    if type(top_k) is not int or not 1 <= top_k <= MOST_ANSWERS:
        raise Refusal(422, f"top_k: 1 to {MOST_ANSWERS} are needed. Received: {top_k!r:.60}.")
    if method == "fill_mask":
        mask = served.mask_token
        size = sum(text.count(mask) * top_k * (len(text) + 64) for (text,) in rows)
        if size > MOST_CANDIDATES:
            raise Refusal(
                413, f"inputs: fewer {mask}, shorter texts or a smaller top_k are needed."
            )
