"""What a change would do, and the form that asks for its reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms

from gameserver.table_admin import ReasonForm
from settings_singleton.models import AuditRow
from settings_singleton.registry import SETTINGS, Setting, Value


@dataclass(frozen=True)
class Difference:
    """One setting that a change moves."""

    setting: Setting
    before: Value
    after: Value

    @property
    def is_dangerous(self) -> bool:
        """Whether an operator has to type the setting's name."""
        return self.setting.is_dangerous(self.before, self.after)

    @property
    def shown_before(self) -> str:
        """The old value, as an operator types it."""
        return self.setting.show(self.before) or "(empty)"

    @property
    def shown_after(self) -> str:
        """The new value, as an operator types it."""
        return self.setting.show(self.after) or "(empty)"

    def __str__(self) -> str:
        return f"{self.setting.name}: {self.shown_before} → {self.shown_after}"


def differences(before: Mapping[str, Value], after: Mapping[str, Value]) -> list[Difference]:
    """Return what really changes, in the registry's order."""
    return [
        Difference(setting, before[name], after[name])
        for name, setting in SETTINGS.items()
        if name in after and name in before and before[name] != after[name]
    ]


def differences_of(row: AuditRow) -> list[Difference]:
    """Return what a line of the history changed; settings that are gone are left out."""
    return differences(row.before, row.after)


class ConfirmForm(ReasonForm):
    """A reason, the revision that the operator sees, and the names that go a dangerous way."""

    seen = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, data: Any, changes: Sequence[Difference], *, revision: int) -> None:
        super().__init__(data, initial={"seen": revision})
        self._names = " ".join(each.setting.name for each in changes if each.is_dangerous)
        if self._names:
            self.fields["names"] = forms.CharField(
                label=f"Type {self._names} to confirm",
                help_text="This opens or costs something, or takes something from players.",
            )

    def clean_names(self) -> str:
        """Compare what was typed with what is about to happen."""
        typed = " ".join(str(self.cleaned_data["names"]).split())
        if typed != self._names:
            raise forms.ValidationError(f"This is not {self._names}.")
        return typed
