"""Django admin pages over items of the table: no ORM, no Scan, no counting.

An unmanaged model (`class Meta: managed = False`) gives a kind of item its place in the index, its
permissions and its entries in the admin log. A `TableAdmin` for it serves four pages: a list that
pages by the table's own position and filters by index keys, one item, an action on it, its log.
Subclasses say what to read (`list_page`, `find`, `describe`) and which actions there are.
"""

from gameserver.table_admin.pages import ACTING, READING, TableAdmin
from gameserver.table_admin.shapes import (
    Description,
    Download,
    Filter,
    ItemAction,
    Listing,
    Panel,
    ReasonForm,
    link,
    show,
)

__all__ = [
    "ACTING",
    "READING",
    "Description",
    "Download",
    "Filter",
    "ItemAction",
    "Listing",
    "Panel",
    "ReasonForm",
    "TableAdmin",
    "link",
    "show",
]
