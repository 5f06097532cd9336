"""Reading of frames, profiles, skills and other settings, and of documents, from files into validated models."""
