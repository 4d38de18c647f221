"""Operators' pages on the switches: see, flip, kill at one click, look back, roll back."""

from django.contrib import admin

from settings_singleton.admin.pages import SettingAdmin
from settings_singleton.admin_models import Setting

admin.site.register(Setting, SettingAdmin)
