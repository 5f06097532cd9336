"""Figures as people read them: lines for a terminal, SVG for a page."""
