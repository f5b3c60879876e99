"""The `openai` dialect: chat completions."""
