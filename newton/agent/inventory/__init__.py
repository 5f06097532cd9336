"""Listing and editing what an agent stores: memories, changes of many memories, documents, and the agent itself."""
