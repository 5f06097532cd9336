"""Context windows of models: what settings, servers, providers and refusals say of them."""
