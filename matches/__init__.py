"""Games: lobbies, running games, memberships, results."""
