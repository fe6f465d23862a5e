"""From a command to an answer."""
