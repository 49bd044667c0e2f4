"""The report of HEAL-MedVQA."""
