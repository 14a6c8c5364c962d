"""The demonstration: train on five handwritten digits, test on the others, write a page."""

from protorect.demo.learning import Learned, learn
from protorect.demo.measure import DemoResult, measure
from protorect.demo.page import demo_page
from protorect.demo.plan import Plan

__all__ = ["DemoResult", "Learned", "Plan", "demo_page", "learn", "measure"]
