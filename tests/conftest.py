"""No test judges by the clock: the machine it runs on may be busy."""

from hypothesis import settings

settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")
