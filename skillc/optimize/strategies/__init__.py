"""Optional mechanisms of the loop, one file each."""
