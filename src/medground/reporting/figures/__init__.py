"""Figures as plotly sees them: plain data, drawn in the browser. Every number comes from the summary, in percent."""
