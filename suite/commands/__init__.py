"""The words of the command line: each module holds the signatures of a few commands, and loads the rest when called."""
