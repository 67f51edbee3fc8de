"""What a run may spend: its caps, how often each stage calls, how large a call is, and bounds on it all."""
