"""A page is opened only where somebody can see it."""

import pytest

from protorect.cli import browser


@pytest.fixture
def opened(monkeypatch):
    """The addresses that were opened, on a terminal with a display."""
    addresses = []
    monkeypatch.setattr(browser.webbrowser, "open", lambda uri: addresses.append(uri) or True)
    monkeypatch.setattr(browser.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(browser.sys, "platform", "linux")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    return addresses


def test_a_page_is_opened_by_its_address(opened, tmp_path):
    assert browser.open_page(tmp_path / "a page.html")
    assert opened == [(tmp_path / "a page.html").as_uri()]


def test_not_in_continuous_integration(opened, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert not browser.open_page(tmp_path / "page.html")
    assert opened == []


def test_not_in_a_pipe(opened, tmp_path, monkeypatch):
    monkeypatch.setattr(browser.sys.stdout, "isatty", lambda: False, raising=False)
    assert not browser.open_page(tmp_path / "page.html")
    assert opened == []


def test_not_without_a_display_except_where_every_session_has_one(opened, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY")
    assert not browser.open_page(tmp_path / "page.html")
    monkeypatch.setattr(browser.sys, "platform", "darwin")
    assert browser.open_page(tmp_path / "page.html")
