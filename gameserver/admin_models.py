"""Permissions for pages that show no single kind of item: the table itself, and the dashboard."""

from django.db import models


class Partition(models.Model):
    """Stands for one partition of the table, looked at by its key."""

    pk_value = models.CharField("partition key", primary_key=True, max_length=2048)

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "partition"
        verbose_name_plural = "partitions (look by key)"

    def __str__(self) -> str:
        return self.pk_value


class Dashboard(models.Model):
    """Stands for the charts on the admin's first page."""

    class Meta:
        managed = False
        default_permissions = ("view",)
