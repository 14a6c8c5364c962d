"""The paper's equations, theory and statistics."""
