"""Corrections of the probability of an answer, which are fitted to the use of one agent."""
