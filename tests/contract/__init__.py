"""The contract of the storage port: a suite that every backend passes, and a reference backend to compare with."""
