"""Predictions for fleets of foxy that are too large for a test."""
