"""Items: JSON values that programs store under a namespace and a key. The text of an item is a memory."""
