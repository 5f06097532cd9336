"""The dashboard: pages for people at `/` of the daemon, rendered on the server, without scripts.

Each page is a client of the HTTP API within the process, with the token of the signed-in session.
"""
