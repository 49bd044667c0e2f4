"""Medical-Checklist: which of two captions, alike but for one medical term, fits the image?"""
