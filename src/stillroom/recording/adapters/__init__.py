"""The recorder inside other people's frameworks, one module each; a module imports its framework, this package none.

`writing` is what all of them do with what a framework hands over.
"""
