"""Simulates and predicts fleets of foxy that are too large for a test."""
