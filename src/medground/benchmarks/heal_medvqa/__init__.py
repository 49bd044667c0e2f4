"""HEAL-MedVQA: does a "yes" hang on the region that was asked about?

Closed and open questions about findings in anatomical regions; then the words of the question (textual perturbation
test, TPT) or the pixels of the region (visual perturbation test, VPT) change, and "yes" should turn into "no". Controls
change something that should leave the answer alone.
"""
