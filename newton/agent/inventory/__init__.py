"""See and edit what an agent stores: lists, changes of many memories, documents, and the agent itself."""
