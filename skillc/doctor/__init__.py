"""What is there for a program to run with, what is missing, and the command that mends it."""
