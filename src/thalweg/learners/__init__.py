"""Learners: a machine, a memory and the contract around them; the general ones, which take parts."""
