"""From the forms that annotations come in to a manifest: one file a form, all to the same lines."""
