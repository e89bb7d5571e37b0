"""The life of a state: declared once, kept in one block of memory, checked, copied, saved and restored."""
