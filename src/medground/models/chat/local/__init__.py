"""What a chat model in this process needs: loading, prompts through its template, sampling that no batch changes."""
