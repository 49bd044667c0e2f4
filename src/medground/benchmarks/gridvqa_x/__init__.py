"""GridVQA-X: does an explainer tell spatial reasoning from a bag-of-words shortcut?"""
