"""The demonstration: trained on five handwritten digits, tested on the others, shown on a page."""

from protorect.demo.learning import Learned, learn
from protorect.demo.measure import DemoResult, measure
from protorect.demo.page import demo_page
from protorect.demo.plan import Plan

__all__ = ["DemoResult", "Learned", "Plan", "demo_page", "learn", "measure"]
