"""The doors of the house: ways for people and programs to reach a memory. None of them decides anything."""
