"""How a phantom is drawn: anatomy, vessels, findings, exposure, markers, and the scene that joins them.

Lengths are in image widths. x runs from the midline to the image's right, which is the patient's left; y runs down
from the upper edge. A scene has no resolution: one scene drawn at 128, 224 or 512 pixels is the same patient.
"""
