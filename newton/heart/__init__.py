"""The kinds of memory, each in a module or package of its own.

They are facts, episodes (experiences), events, procedures, censors (rules that forbid or warn), documents, entities
(named people and things) with their relations, items of programs, and the identity of an agent.
"""
