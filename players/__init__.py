"""Accounts: users, guests, credentials, sessions, the leaderboard."""
