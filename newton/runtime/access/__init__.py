"""Authentication of the daemon's clients by tokens, and the permissions of each token."""
