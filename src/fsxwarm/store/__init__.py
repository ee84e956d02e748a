"""What fsxwarm keeps between runs."""
