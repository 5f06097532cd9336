"""How far the stated confidence can be trusted, computed from judged decisions alone."""
