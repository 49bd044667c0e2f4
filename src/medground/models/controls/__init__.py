"""Controls: any model without its picture, and answers that need no model."""
