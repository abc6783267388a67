"""Encoding: turn messages into episodes and statements into facts, without a language model."""
