from tests.fixtures import api, cheap_passwords

__all__ = ["api", "cheap_passwords"]
