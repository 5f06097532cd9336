"""Making conversations shorter: what is to be told in fewer words, and in which. The acts are elsewhere."""
