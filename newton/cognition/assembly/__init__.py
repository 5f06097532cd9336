"""Budget, fill and render: turn scored candidates into the text of a context."""
