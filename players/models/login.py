"""How a user gets in: his password's hash, his sessions, and the device of a guest."""

from datetime import datetime
from typing import Self

from pynamodb.attributes import UnicodeAttribute, UTCDateTimeAttribute

from gameserver import table
from gameserver.capacity import access_pattern
from gameserver.models import Item

# A username and the id of one of his sessions.
Login = tuple[str, str]


class Credential(Item, discriminator="CREDENTIAL"):
    """USER#{username} / #CREDENTIAL: the password's hash, apart from what clients may see."""

    password_hash = UnicodeAttribute()

    @classmethod
    def new(cls, username: str, password_hash: str) -> Self:
        """Return an unsaved credential."""
        return cls(*table.credential_key(username), password_hash=password_hash)

    @classmethod
    @access_pattern("read credential")
    def of(cls, username: str) -> Self | None:
        """Read a password hash: one consistent GetItem, 1 RCU."""
        return cls.read(table.credential_key(username), consistent=True)

    @classmethod
    @access_pattern("change password")
    def change_hash(cls, username: str, old_hash: str, new_hash: str) -> None:
        """Replace the hash if it is still the old one: one UpdateItem, 1 WCU.

        Raises: ConditionFailed if another change came first.
        """
        credential = cls.at(table.credential_key(username))
        condition = cls.password_hash.is_in(old_hash, new_hash)
        cls.update_one(credential.change([cls.password_hash.set(new_hash)], condition))


class Session(Item, discriminator="SESSION"):
    """USER#{username} / SESSION#{id}: one login; holds the digest of its current refresh token."""

    username = UnicodeAttribute()
    session_id = UnicodeAttribute()
    token_hash = UnicodeAttribute()
    created_at = UTCDateTimeAttribute()

    @classmethod
    def new(
        cls, username: str, session_id: str, token_hash: str, *, now: datetime, expires_at: datetime
    ) -> Self:
        """Return an unsaved session."""
        return cls(
            *table.session_key(username, session_id),
            username=username,
            session_id=session_id,
            token_hash=token_hash,
            created_at=now,
            expires_at=expires_at,
        )

    @classmethod
    @access_pattern("open session")
    def open(cls, session: Self) -> None:
        """Store a login: one PutItem, 1 WCU. The id is random, so a repeat writes the same."""
        session.save()

    @classmethod
    @access_pattern("rotate refresh token")
    def rotate(
        cls, username: str, session_id: str, old_hash: str, new_hash: str, *, expires_at: datetime
    ) -> Self:
        """Replace the refresh token's digest: one UpdateItem, 1 WCU.

        Raises: ConditionFailed with the session as it stands (None: no such session).
        """
        session = cls.at(table.session_key(username, session_id))
        actions = [cls.token_hash.set(new_hash), cls.expires_at.set(expires_at)]
        # The new digest is accepted too: it is this very write, repeated after a lost answer.
        return cls.update_one(session.change(actions, cls.token_hash.is_in(old_hash, new_hash)))

    @classmethod
    @access_pattern("list sessions")
    def all_of(cls, username: str) -> list[Self]:
        """Read an account's sessions: one consistent Query, 1 RCU per 4 KB."""
        pk = table.user_key(username)[0]
        return cls.read_all(pk, cls.SK.startswith(table.SESSION_PREFIX), consistent=True)

    @classmethod
    @access_pattern("close session")
    def close(cls, username: str, session_id: str) -> None:
        """Delete a login: one DeleteItem, 1 WCU."""
        cls.delete_one(table.session_key(username, session_id))


class Device(Item, discriminator="DEVICE"):
    """DEVICE#{sha256 of the device id} / #METADATA: which guest account a device logs in to."""

    username = UnicodeAttribute()

    @classmethod
    def new(cls, device_hash: str, username: str) -> Self:
        """Return an unsaved device."""
        return cls(*table.device_key(device_hash), username=username)

    @classmethod
    @access_pattern("read device")
    def by_hash(cls, device_hash: str) -> Self | None:
        """Find a device's account: one consistent GetItem, 1 RCU."""
        return cls.read(table.device_key(device_hash), consistent=True)

    @classmethod
    @access_pattern("forget device")
    def forget(cls, device_hash: str) -> None:
        """Delete a device: one DeleteItem, 1 WCU."""
        cls.delete_one(table.device_key(device_hash))
