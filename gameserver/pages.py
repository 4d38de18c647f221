"""The front page: where everything is."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


async def home(request: HttpRequest) -> HttpResponse:
    """Show links to the API's documents, the admin and the metrics."""
    return render(request, "gameserver/home.html")
