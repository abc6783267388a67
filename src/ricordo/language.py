"""The scripted language model, under the import path that documentation and programs use."""

from ricordo.models.language.scripted import ScriptedModel

__all__ = ["ScriptedModel"]
