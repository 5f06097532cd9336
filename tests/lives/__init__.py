"""Lives of some weeks that a person tells over the OpenAI protocol, and what is known of them at the end."""
