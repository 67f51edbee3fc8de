"""Rollouts in the places where a skill is used."""
