"""Turns texts into rows, and a model's arrays into answers for people. It needs no Keras."""
