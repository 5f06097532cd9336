"""Decisions: recorded before they are made, judged afterwards, and what that says about the one who made them."""
