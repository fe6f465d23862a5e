"""Corrections of Keras and its backends. Each file says why it exists and when it can go."""
