"""Lists of the memories of an agent, and changes of their editable fields."""
