"""The reconciling call: what new lines change in what is known, as a model proposes it and code checks it. Pure."""
