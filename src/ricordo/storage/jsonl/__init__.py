"""The line format: rows of the database as lines of JSON, in the files of a folder and in complete exports."""
