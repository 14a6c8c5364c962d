"""Results as tables, plots and pages. Reads results, never models."""
