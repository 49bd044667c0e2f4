"""``python -m medground``."""

from medground.cli import main

main()
