"""What Django's admin needs to know of settings: a name, permissions and a place for its log."""

from django.db import models


class Setting(models.Model):
    """Stands for one attribute of the settings item; the staff database has no such table."""

    name = models.CharField(primary_key=True, max_length=64)

    class Meta:
        managed = False
        default_permissions = ("view", "change")
        verbose_name = "switch"
        verbose_name_plural = "switches and settings"

    def __str__(self) -> str:
        return self.name
