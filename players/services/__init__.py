"""What happens to accounts: `accounts` for who they are, `sessions` for who is logged in."""
