"""Faces that run on: the gateway that holds agents of any kind to a budget."""
