#!/usr/bin/env python
"""Run a management command: `python manage.py help` lists them."""

import argparse
import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gameserver.settings")
    # The settings read DATA_DIR before Django parses a command's own options.
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--data-dir")
    data_dir = early.parse_known_args(sys.argv[2:])[0].data_dir
    if data_dir:
        os.environ["DATA_DIR"] = data_dir

    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
