"""What answers from released sums: one folder for each reader."""
