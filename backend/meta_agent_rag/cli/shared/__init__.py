"""What the commands share: options, output, and how rounds are shown."""
