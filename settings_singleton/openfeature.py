"""An OpenFeature provider over the same snapshot, for teams who use that standard.

    from openfeature import api
    from settings_singleton.openfeature import SettingsProvider

    api.set_provider(SettingsProvider())
    api.get_client().get_boolean_value("joining_enabled", False)

It needs the package `openfeature-sdk` (extra `openfeature`). A value whose stored attribute is
unusable has the reason ERROR; the safe default is returned, not the caller's.

Source: OpenFeature specification, sections 2.2 (resolution) and 5.1 (events).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar, cast

from openfeature.evaluation_context import EvaluationContext
from openfeature.event import ProviderEventDetails
from openfeature.exception import FlagNotFoundError, TypeMismatchError
from openfeature.flag_evaluation import FlagResolutionDetails, FlagValueType, Reason
from openfeature.provider import AbstractProvider, Metadata

from settings_singleton import cache
from settings_singleton.cache import Snapshot
from settings_singleton.registry import SETTINGS

ValueT = TypeVar("ValueT", bool, int, str)


class SettingsProvider(AbstractProvider):
    """Resolve every setting by its name; the evaluation context plays no part."""

    def __init__(self) -> None:
        super().__init__()
        self._unsubscribe: Callable[[], None] | None = None

    def get_metadata(self) -> Metadata:
        """Name the provider."""
        return Metadata(name="settings_singleton")

    def initialize(self, evaluation_context: EvaluationContext) -> None:
        """Read the settings, unless that was done, and tell OpenFeature of changes from now on."""
        _ = cache.current()
        self._unsubscribe = cache.subscribe(self._on_change)

    def shutdown(self) -> None:
        """Tell no more; the refresh thread belongs to the process, not to this provider."""
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None

    def resolve_boolean_details(
        self,
        flag_key: str,
        default_value: bool,
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[bool]:
        """Resolve a switch. Raises: FlagNotFoundError, TypeMismatchError."""
        return _resolve(flag_key, bool)

    def resolve_integer_details(
        self,
        flag_key: str,
        default_value: int,
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[int]:
        """Resolve a number. Raises: FlagNotFoundError, TypeMismatchError."""
        return _resolve(flag_key, int)

    def resolve_string_details(
        self,
        flag_key: str,
        default_value: str,
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[str]:
        """Resolve a text. Raises: FlagNotFoundError, TypeMismatchError."""
        return _resolve(flag_key, str)

    def resolve_float_details(
        self,
        flag_key: str,
        default_value: float,
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[float]:
        """Resolve a (whole) number. Raises: FlagNotFoundError, TypeMismatchError."""
        whole = _resolve(flag_key, int)
        return FlagResolutionDetails(float(whole.value), reason=whole.reason, variant=whole.variant)

    def resolve_object_details(
        self,
        flag_key: str,
        default_value: Sequence[FlagValueType] | Mapping[str, FlagValueType],
        evaluation_context: EvaluationContext | None = None,
    ) -> FlagResolutionDetails[Sequence[FlagValueType] | Mapping[str, FlagValueType]]:
        """Refuse: no setting is an object. Raises: FlagNotFoundError, TypeMismatchError."""
        _known(flag_key)
        raise TypeMismatchError(f"{flag_key} is no object")

    def _on_change(self, before: Snapshot, after: Snapshot) -> None:
        changed = [name for name in SETTINGS if getattr(before, name) != getattr(after, name)]
        self.emit_provider_configuration_changed(ProviderEventDetails(flags_changed=changed))


def _resolve(name: str, wanted: type[ValueT]) -> FlagResolutionDetails[ValueT]:
    _known(name)
    if SETTINGS[name].type is not wanted:
        raise TypeMismatchError(f"{name} is no {wanted.__name__}")
    snapshot = cache.current()
    value = cast(ValueT, getattr(snapshot, name))
    reason = Reason.CACHED if snapshot.revision else Reason.DEFAULT
    if name in snapshot.defects:
        reason = Reason.ERROR
    return FlagResolutionDetails(
        value, reason=reason, flag_metadata={"revision": snapshot.revision}
    )


def _known(name: str) -> None:
    if name not in SETTINGS:
        raise FlagNotFoundError(f"there is no setting {name}")
