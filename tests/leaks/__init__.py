"""Leak tests: no caller ever sees data of another owner."""
