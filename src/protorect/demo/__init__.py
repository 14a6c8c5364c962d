"""The demonstration: few-shot learning on handwritten digits, and a page that shows it."""

from protorect.demo.measure import DemoResult, run_demo
from protorect.demo.page import demo_page

__all__ = ["DemoResult", "demo_page", "run_demo"]
