"""The outside world that thinks: embedding models, chat models, and the tokenizer they are billed by."""
