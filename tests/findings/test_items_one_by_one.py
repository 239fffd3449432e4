"""Rule items-one-by-one: results of many Python items travel, each pickled by itself."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import dask
import dask.bag as db
import pytest
from distributed import Client

import stageprof
from findings.asking import asked, one, run
from replay.handmade import HandMade, ns
from stageprof_collectors.recording import Recording
from stageprof_collectors.rules.items_one_by_one import RULE
from stageprof_runtime.event import FINISH, SHARE, SPAN
from stageprof_runtime.stage import STEP


def travelling(
    name: str = "loaded",
    type_: str = "list",
    nbytes: int = 200_000,
    dump: float = 400.0,
    told: float = 0.0,
    told_bytes: int = 200_000,
    weight: int = 8,
) -> Recording:
    """Five results, each fetched by another worker in half a second, of which most is its dump."""
    made = HandMade(2)
    graph, now, last = made.graph(0, 0, 0), 0.0, -1
    sender, receiver = made._workers
    for i in range(5):
        cause = -1 - graph if last < 0 else last
        maker = made.run(0, now, now + 100, cause=cause, key=f"{name}-{i:032x}")
        begun, now = now + 100, now + 600
        last = made.run(
            1, now, now + 50, cause=maker, needs=[maker], lead=(begun, begun), fetched=now,
            key=f"used-{i:032x}", wanted=i == 4,
        )  # fmt: skip
        dumped = (SPAN, STEP["data.dump"], ns(begun), ns(begun + dump), 3, receiver.name, nbytes)
        made.rows_of(sender).append(dumped)
        if told:
            row = (
                SHARE,
                ns(begun + dump),
                STEP["data.dump"],
                name,
                1,
                round(told * 1e6),
                told_bytes,
            )
            made.rows_of(sender).append(row)
        fetched = (SPAN, STEP["data.transfer"], ns(begun), ns(now), 3, sender.name, nbytes)
        made.rows_of(receiver).append(fetched)
        now += 50
    made.wait(0, now, last, now)
    _typed(made, type_, weight)
    return made.recording(now)


def _typed(made: HandMade, type_: str, weight: int) -> None:
    for rows in made._rows.values():
        rows[:] = [(*row[:4], weight, type_) if row[0] == FINISH else row for row in rows]


def test_what_is_pickled_and_its_seconds_are_named() -> None:
    found = one(RULE, travelling())
    assert "`loaded`" in found.headline
    assert "pickled item by item, 1.0 MB in 2.00 s: 2.00 s of 3.25 s" in found.headline
    assert found.cost_s == pytest.approx(2.0, abs=0.02)
    assert found.saving_s == pytest.approx((2.0, 2.0), abs=0.3)
    assert found.evidence["type"] == "list"
    assert found.where.prefix == "loaded"


@pytest.mark.parametrize(
    ("changed", "fires"),
    [
        ({"type_": "tuple"}, True),
        ({"type_": "numpy.ndarray"}, False),
        ({"type_": "etl.Listing"}, True),  # one object, made of many
        ({"type_": "etl.Listing", "nbytes": 10_000_000}, False),
        ({"nbytes": 4_000_000}, False),  # ten million bytes a second: as in one piece
        ({"type_": "str"}, False),
        ({"nbytes": 20_000_000}, False),  # as fast as bytes are
        ({"dump": 20.0, "nbytes": 1000}, False),  # 3 % of the run
        ({"told": 380.0}, True),
        ({"told": 20.0}, False),  # its messages took long, but not for the results in them
    ],
)
def test_it_fires_for_slow_lists_only(changed: dict[str, Any], fires: bool) -> None:
    assert bool(asked(RULE, travelling(**changed))) is fires


@pytest.mark.parametrize("weight", [0, -1])
def test_results_that_have_no_size_are_named_too(weight: int) -> None:
    """The layer with most of their bytes was the first of all, which had none of them."""
    found = one(RULE, travelling(weight=weight))
    assert (found.where.prefix, found.evidence["type"]) == ("loaded", "list")


def test_of_what_took_long_only_what_was_for_the_results_counts() -> None:
    found = one(RULE, travelling(told=200.0))
    assert found.cost_s == pytest.approx(1.0, abs=0.02)
    assert found.saving_s == pytest.approx((1.0, 1.0), abs=0.2)


def test_headers_of_the_items_count_with_them() -> None:
    """Of 200 kB 80 are items, which took half of the time: the rest is a header for each."""
    found = one(RULE, travelling(told=200.0, told_bytes=80_000))
    assert found.cost_s == pytest.approx(2.0, abs=0.02)


def test_other_results_in_the_same_messages_are_no_headers() -> None:
    """A message of 200 kB that took long has no 199 kB of headers for 500 bytes of items."""
    found = asked(RULE, travelling(told=20.0, told_bytes=500))
    assert sum(each.cost_s for each in found) < 0.5


def test_it_is_shown_instead_of_what_says_only_that_results_travel() -> None:
    ids = [finding.rule for finding in travelling().findings()]
    assert RULE.id in ids
    assert "transfer-heavy" not in ids


def test_printed_code_makes_one_piece_of_the_items() -> None:
    names = run(one(RULE, travelling()))
    frame = names["in_one_piece"]([{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    assert frame["a"].tolist() == [1, 3]


def test_printed_code_makes_one_piece_of_what_a_dict_holds() -> None:
    """A data frame of a word count raises: "If using all scalar values, you must pass an index"."""
    names = run(one(RULE, travelling(type_="dict")))
    assert dict(names["in_one_piece"]({"a": 1, "b": 2})) == {"a": 1, "b": 2}


def test_an_object_of_many_objects_is_to_be_arrays() -> None:
    found = one(RULE, travelling(type_="etl.Book", nbytes=4_000_000))
    assert "are pickled object by object, 20.0 MB in 2.00 s" in found.headline
    assert "objects that a `Book` is made of" in found.fix.text
    items = [SimpleNamespace(price=1.5, id=1), SimpleNamespace(price=2.5, id=2)]
    assert run(found, items=items)["columns"]["price"].tolist() == [1.5, 2.5]


def test_a_bag_is_to_be_folded_and_printed_code_does_it() -> None:
    found = one(RULE, travelling("shuffle-split"))
    assert "`foldby` in place of `groupby`" in found.fix.text
    bag, key = db.from_sequence(range(20), npartitions=4), lambda item: item % 3
    totals = run(found, bag=bag, key=key)["totals"]
    with dask.config.set(scheduler="sync"):
        assert dict(totals.compute()) == {0: 7, 1: 7, 2: 6}


@pytest.mark.parametrize("prefix", ["frequencies-part", "clean-split-frequencies-aggregate"])
def test_frequencies_of_a_bag_are_to_be_counted_in_one_piece(prefix: str) -> None:
    found = one(RULE, travelling(prefix))
    items = ["a", "b", "a", "c", "a"]

    with dask.config.set(scheduler="sync"):
        counts = run(found, bag=db.from_sequence(items, npartitions=2))["counts"].compute()
    assert counts == {"a": 3, "b": 1, "c": 1}
    assert type(counts) is Counter  # `serialize` goes over the items of just a dict


@pytest.mark.cluster
@pytest.mark.smoke
def test_dask_does_pickle_a_list_item_by_item(client: Client) -> None:
    """If it no longer does, the advice is to be changed; in another list it never did."""
    here, there = list(client.scheduler_info()["workers"])

    def moved(result: Any) -> Recording:
        with stageprof.profile(gil=False) as region:
            made = client.submit(lambda: result(30_000), workers=here, pure=False)
            client.submit(len, made, workers=there, pure=False).result()
        return region.recording

    found = one(RULE, moved(lambda n: [float(i) for i in range(n)]))
    assert found.evidence["type"] == "list"
    assert not asked(RULE, moved(lambda n: [[float(i) for i in range(n)]]))
