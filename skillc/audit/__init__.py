"""`skillc audit`: what fresh rollouts open and quote of a skill's folder, and what they never do."""
