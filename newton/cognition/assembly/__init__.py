"""Budget, fill and render: scored candidates become the text of a context."""
