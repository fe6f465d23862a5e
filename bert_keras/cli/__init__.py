"""A room: the command line, `bert-keras`. It begins in `main.py`."""
