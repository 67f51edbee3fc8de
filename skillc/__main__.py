"""`python -m skillc`."""

from skillc.cli import main

if __name__ == "__main__":
    main()
