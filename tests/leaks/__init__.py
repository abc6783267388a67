"""Whether anybody is ever shown what is another's."""
