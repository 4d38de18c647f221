"""Read the AWS workshop "Modeling game player data with Amazon DynamoDB" in our terms.

Its dump has one JSON item a line: users, games and memberships, under the keys that we use, too.
`lines` maps one line, `plan` holds lines against each other; both are pure. What the dump doesn't
know stays unknown (null), and nothing personal but the name is taken.

Source: aws-samples/amazon-dynamodb-labs, game-player-data/scripts/items.json.
"""
