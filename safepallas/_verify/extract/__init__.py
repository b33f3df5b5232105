"""From a traced function to its program: the events of every core, in order."""
