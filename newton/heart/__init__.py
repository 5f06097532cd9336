"""The kinds of memory, each in a module or package of its own.

They are facts, episodes (experiences), events, procedures, censors (prohibitions), documents, entities (named people
and things) with their relations, items (JSON values of programs), and the identity of an agent.
"""
