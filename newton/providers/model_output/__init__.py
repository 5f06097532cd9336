"""Reading of the text of models as structured output."""
