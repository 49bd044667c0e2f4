"""The closed world of GridVQA-X: scenes, questions, answers and causes."""
