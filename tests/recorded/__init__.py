"""Outputs of commands and fixed examples, kept so that a change of structure changes no byte."""
