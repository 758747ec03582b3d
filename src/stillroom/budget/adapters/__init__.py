"""The ledger inside other people's frameworks, one module each; a module imports its framework, this package none.

`request` is what all of them do around a request to a model.
"""
