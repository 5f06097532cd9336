"""Items: JSON values of programs, each with a namespace and a key, whose text is a memory."""
