"""Reports: text for a terminal, and HTML pages with SVG plots."""
