"""Routes in the formats of OpenAI."""
