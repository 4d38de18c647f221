"""What holds when the table answers, answers strangely, or does not answer."""

import threading

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from settings_singleton.live import STALE_AFTER_SECONDS, FlagsCache
from settings_singleton.registry import SAFE, RawItem
from settings_singleton.shapes import Snapshot
from tests.settings_singleton.fakes import FakeClock, FakeStore
from tests.settings_singleton.items import an_item

THROTTLED = ClientError({"Error": {"Code": "ThrottlingException"}}, "GetItem")
HUNG = ReadTimeoutError(endpoint_url="http://table")
DOWN = EndpointConnectionError(endpoint_url="http://table")
NO_TABLE = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "GetItem")
FAILURES = [THROTTLED, HUNG, DOWN, NO_TABLE]


def a_cache(item: RawItem | None) -> tuple[FlagsCache, FakeStore, FakeClock]:
    store, clock = FakeStore(item), FakeClock()
    return FlagsCache(store.read, clock=clock), store, clock


def test_a_read_of_a_flag_costs_no_read_of_the_table() -> None:
    cache, store, _ = a_cache(an_item())
    assert cache.live.signup_enabled

    for _ in range(100_000):
        _ = cache.live.signup_enabled

    assert store.reads == 1


def test_a_higher_revision_is_applied_at_once() -> None:
    cache, store, _ = a_cache(an_item(1))
    cache.refresh()
    store.item = an_item(2, signup_enabled=False)

    assert cache.refresh()

    assert not cache.live.signup_enabled
    assert cache.status().revision == 2


def test_a_snapshot_in_hand_does_not_change_under_its_reader() -> None:
    cache, store, _ = a_cache(an_item(1))
    cache.refresh()
    held = cache.snapshot
    store.item = an_item(2, signup_enabled=False)
    cache.refresh()

    assert held.signup_enabled
    with pytest.raises(AttributeError):
        held.signup_enabled = False  # type: ignore[misc]  # that is the point


def test_nobody_can_set_a_flag_by_assignment() -> None:
    cache, _, _ = a_cache(an_item())

    with pytest.raises(AttributeError):
        cache.live.signup_enabled = False
    with pytest.raises(AttributeError):
        _ = cache.live.no_such_flag


def test_no_item_at_boot_means_safe_defaults_and_says_so() -> None:
    cache, _, _ = a_cache(None)

    assert cache.refresh()

    assert cache.snapshot == Snapshot()
    assert cache.live.maintenance_mode
    status = cache.status()
    assert (status.source, status.is_ready, status.revision) == ("defaults", True, 0)


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_store_that_fails_at_boot_means_safe_defaults_and_not_ready(failure: Exception) -> None:
    cache, store, _ = a_cache(an_item())
    store.error = failure

    assert not cache.refresh()

    assert vars(SAFE).items() <= vars(cache.snapshot).items()
    status = cache.status()
    assert (status.source, status.is_ready, status.is_stale) == ("defaults", False, True)
    assert status.age_seconds is None


def test_a_store_that_comes_up_after_boot_is_believed_at_once() -> None:
    cache, store, _ = a_cache(an_item())
    with store.failing(DOWN):
        cache.refresh()

    cache.refresh()

    assert cache.live.signup_enabled
    assert cache.status().is_ready


@pytest.mark.parametrize("failure", FAILURES, ids=repr)
def test_a_store_that_fails_later_changes_no_flag_but_the_age(failure: Exception) -> None:
    cache, store, clock = a_cache(an_item(3, chat_enabled=False))
    cache.refresh()
    before = cache.snapshot
    with store.failing(failure):
        # F-06: five minutes of it.
        for _ in range(30):
            clock.now += 10
            assert not cache.refresh()

    assert cache.snapshot is before
    status = cache.status()
    assert (status.age_seconds, status.is_stale, status.is_ready) == (300, True, True)
    assert (status.source, status.revision) == ("table", 3)


def test_an_answer_ends_staleness() -> None:
    cache, _, clock = a_cache(an_item())
    cache.refresh()
    clock.now += STALE_AFTER_SECONDS + 1
    assert cache.status().is_stale

    cache.refresh()

    assert not cache.status().is_stale


def test_a_wrong_typed_attribute_costs_only_its_flag() -> None:
    cache, store, _ = a_cache(an_item(1))
    cache.refresh()
    store.item = an_item(2) | {"chat_enabled": {"S": "off"}}

    cache.refresh()

    assert (cache.live.chat_enabled, cache.live.joining_enabled) == (False, True)
    assert cache.status().defects == ("chat_enabled",)


def test_unknown_attributes_change_nothing() -> None:
    cache, store, _ = a_cache(an_item(1))
    cache.refresh()
    store.item = an_item(2) | {"tournaments_enabled": {"M": {}}}

    assert cache.refresh()

    assert cache.status().defects == ()


def test_an_unreadable_revision_is_as_if_the_table_said_nothing() -> None:
    cache, store, _ = a_cache(an_item(5))
    cache.refresh()
    store.item = an_item(6, joining_enabled=False) | {"schema_version": {"S": "six"}}

    assert not cache.refresh()
    assert not cache.refresh()

    assert cache.live.joining_enabled


def test_one_older_revision_is_not_applied() -> None:
    cache, store, _ = a_cache(an_item(5, signup_enabled=False))
    cache.refresh()
    store.item = an_item(4)
    cache.refresh()
    store.item = an_item(5, signup_enabled=False)
    cache.refresh()
    store.item = an_item(4)
    cache.refresh()

    assert not cache.live.signup_enabled
    assert cache.status().revision == 5


def test_a_restored_table_is_believed_the_second_time() -> None:
    cache, store, _ = a_cache(an_item(9))
    cache.refresh()
    store.item = an_item(4, signup_enabled=False)
    cache.refresh()
    assert cache.live.signup_enabled

    cache.refresh()

    assert not cache.live.signup_enabled
    assert cache.status().revision == 4


def test_a_failure_between_two_doubts_proves_nothing() -> None:
    cache, store, _ = a_cache(an_item(9))
    cache.refresh()
    store.item = an_item(4, signup_enabled=False)
    cache.refresh()
    with store.failing(HUNG):
        cache.refresh()

    assert cache.live.signup_enabled


def test_an_item_edited_by_hand_without_a_new_revision_is_believed_the_second_time() -> None:
    cache, store, _ = a_cache(an_item(3))
    cache.refresh()
    store.item = an_item(3, joining_enabled=False)
    cache.refresh()
    assert cache.live.joining_enabled

    cache.refresh()

    assert not cache.live.joining_enabled


def test_a_deleted_item_means_safe_defaults_once_a_second_read_agrees() -> None:
    cache, store, _ = a_cache(an_item(3))
    cache.refresh()
    store.item = None
    cache.refresh()
    assert cache.live.signup_enabled

    cache.refresh()

    assert cache.snapshot == Snapshot()
    assert cache.status().source == "defaults"


def test_an_item_made_anew_goes_on_where_safe_defaults_held() -> None:
    cache, store, _ = a_cache(None)
    cache.refresh()
    store.item = an_item(1)

    cache.refresh()

    assert cache.live.signup_enabled


def test_readers_who_come_together_share_one_read() -> None:
    """Nobody gets an answer that was on its way before he asked."""
    entered, leave = threading.Event(), threading.Event()
    store = FakeStore(an_item())

    def slow_read() -> dict[str, RawItem]:
        entered.set()
        leave.wait(10)
        return store.read()

    cache = FlagsCache(slow_read)
    first = threading.Thread(target=cache.refresh)
    first.start()
    entered.wait(10)
    others = [threading.Thread(target=cache.refresh) for _ in range(50)]
    for other in others:
        other.start()
    leave.set()
    for thread in [first, *others]:
        thread.join(10)

    # The first one's, and one that began after the others came (a late thread may need its own).
    assert 2 <= store.reads <= 3


def test_reads_raced_against_a_write_converge_on_what_was_written() -> None:
    """F-02: an old value on its way must not stay."""
    cache, store, _ = a_cache(an_item(1))
    stop = threading.Event()

    def refresh_again_and_again() -> None:
        while not stop.is_set():
            cache.refresh()

    readers = [threading.Thread(target=refresh_again_and_again) for _ in range(4)]
    for reader in readers:
        reader.start()
    for revision in range(2, 252):
        store.item = an_item(revision, win_reward_coins=revision)
    cache.refresh()

    assert cache.live.win_reward_coins == 251
    stop.set()
    for reader in readers:
        reader.join(10)
    assert cache.live.win_reward_coins == 251


def test_listeners_hear_of_changes_only_and_cannot_break_the_refresh() -> None:
    cache, store, _ = a_cache(an_item(1))
    heard: list[tuple[int, int]] = []

    def broken(before: Snapshot, after: Snapshot) -> None:
        raise RuntimeError("a listener's own fault")

    cache.subscribe(broken)
    stop = cache.subscribe(lambda before, after: heard.append((before.revision, after.revision)))
    cache.refresh()
    cache.refresh()
    store.item = an_item(2)
    cache.refresh()
    stop()
    store.item = an_item(3)
    cache.refresh()

    assert heard == [(0, 1), (1, 2)]
