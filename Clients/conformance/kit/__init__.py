"""Runs a client for Sluice through scenarios against a real broker and a scripted one."""
