"""What Django calls this app."""

from django.apps import AppConfig


class SettingsSingletonConfig(AppConfig):
    name = "settings_singleton"
    verbose_name = "Switches"
