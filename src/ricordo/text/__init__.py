"""Text as words: folded and stemmed by script for the index, freed of function words for a question; names and kin."""

from ricordo.text.analyzer import function_words, index_terms, name_key, name_terms, question_terms, raw_words
from ricordo.text.names import same_name_key
from ricordo.text.statement import Statement, statement, statement_line

__all__ = [
    "Statement",
    "function_words",
    "index_terms",
    "name_key",
    "name_terms",
    "question_terms",
    "raw_words",
    "same_name_key",
    "statement",
    "statement_line",
]
