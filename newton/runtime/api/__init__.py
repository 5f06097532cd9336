"""HTTP: translates requests to calls and results back; decides nothing."""
