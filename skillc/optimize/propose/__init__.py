"""What the optimizer is shown and asked, and the edits and drafts that it proposes."""
