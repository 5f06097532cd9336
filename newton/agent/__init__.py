"""The bundled agent: a turn is context, model, record."""
