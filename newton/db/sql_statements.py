"""Splitting of SQL files into statements. A distributed database refuses several statements in one message."""

import re

TOKEN_PATTERN = re.compile(
    r"""
    --[^\n]*                                   # comment
    | /\*.*?\*/
    | [eE]'(?:[^'\\]|\\.|'')*'                 # string with escapes
    | '(?:[^']|'')*'
    | "(?:[^"]|"")*"                           # quoted name
    | (?P<tag>\$(?:[A-Za-z_]\w*)?\$).*?(?P=tag)  # body of a function
    | \bbegin\s+atomic\b
    | \b(?:case|end)\b
    | ;
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
COMMENT_PATTERN = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)


def split_statements(sql: str) -> list[str]:
    """Return the statements of a text, without the semicolons, each with the comments before it.

    Supports what a migration needs: function bodies in dollar quotes or in `begin atomic ... end`.
    """
    statements: list[str] = []
    start, depth = 0, 0
    for match in TOKEN_PATTERN.finditer(sql):
        token = match.group().lower()
        if token.startswith("begin"):
            depth = 1
        elif token == "case" and depth:
            depth += 1
        elif token == "end" and depth:
            depth -= 1
        elif token == ";" and not depth:
            statements.append(sql[start : match.start()].strip())
            start = match.end()
    return [statement for statement in (*statements, sql[start:].strip()) if COMMENT_PATTERN.sub("", statement).strip()]
