"""Reports as text for a terminal, as JSON, and as HTML pages with SVG plots."""
