"""The processing of one message (a turn): build the context and the prompt, call the model, run its tools, store it
all.
"""
