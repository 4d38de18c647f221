"""Every path the server answers."""

from django.contrib import admin
from django.urls import path, re_path

from gameserver import asyncapi, dashboard, health, pages, problems
from gameserver.api import api

urlpatterns = [
    path("", pages.home),
    path("admin/dashboard.json", dashboard.page, name="admin_dashboard"),
    path("admin/", admin.site.urls),
    path("api/asyncapi.json", asyncapi.asyncapi_json),
    path("api/docs/websocket", asyncapi.asyncapi_page),
    path("api/", api.urls),
    re_path(r"^api/", problems.unknown_path),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.metrics),
]
