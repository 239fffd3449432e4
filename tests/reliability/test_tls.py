"""A cluster that speaks TLS only, with certificates made for the occasion."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme
from distributed import Client, LocalCluster
from distributed.security import Security

import clusters
import remains
import stageprof
from reliability.accounts import closed, inc, right
from stageprof.cli import main

pytestmark = pytest.mark.cluster


class Papers(NamedTuple):
    """Files of an authority and of one certificate that it gave."""

    ca: str
    cert: str
    key: str

    def options(self) -> tuple[str, ...]:
        """For Dask's own commands."""
        names = {"--tls-ca-file": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        return tuple(part for pair in names.items() for part in pair)

    def security(self) -> Security:
        """For a client in this process."""
        return Security(
            require_encryption=True,
            tls_ca_file=self.ca, tls_client_cert=self.cert, tls_client_key=self.key,
        )  # fmt: skip


def issued(folder: Path) -> Papers:
    """By an authority that nobody else knows."""
    folder.mkdir()
    authority = trustme.CA()
    certificate = authority.issue_cert("dask")
    papers = Papers(*(str(folder / name) for name in Papers._fields))
    authority.cert_pem.write_to_path(papers.ca)
    certificate.cert_chain_pems[0].write_to_path(papers.cert)
    certificate.private_key_pem.write_to_path(papers.key)
    return papers


class Secured(NamedTuple):
    """A cluster with a flight recorder behind TLS."""

    client: Client
    papers: Papers

    @property
    def address(self) -> str:
        return clusters.scheduler_of(self.client)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    papers = issued(folder / "papers")
    flight = ("--preload", "stageprof_runtime.preload", "--stageprof-dir", str(folder / "flight"))
    line = ("--protocol", "tls", "--port", "0", "--no-dashboard", *papers.options(), *flight)
    with ExitStack() as stack:
        scheduler = stack.enter_context(clusters.process("scheduler", *line))
        address = clusters.address_of(scheduler)
        assert address.startswith("tls://")
        stack.enter_context(clusters.worker(address, 1, *papers.options()))
        client = stack.enter_context(Client(address, security=papers.security()))
        client.wait_for_workers(1, timeout=60)
        yield Secured(client, papers)


def test_a_cluster_that_speaks_tls_is_recorded_whole(secured: Secured) -> None:
    """With every task of every worker, and its clocks."""
    client = secured.client
    with stageprof.profile(client=client) as prof:
        assert client.gather(client.map(inc, range(100), pure=False)) == right(100)
    clusters.soon(lambda: not any("-batch" in x for x in remains.of_client(client)), 10)
    closed(prof.recording)
    workers = prof.recording.workers()
    assert workers["instrumented"].tolist() == [True]
    assert workers["tasks"].tolist() == [100]
    assert workers["worker"].str.startswith("tls://").all()
    assert workers["offset_error_s"].notna().all()


def test_its_flight_recorder_is_dumped_over_tls(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a command that takes its certificates from Dask's configuration."""
    trust(monkeypatch, secured.papers)
    futures = secured.client.map(inc, range(50), key="flown", pure=False)
    assert secured.client.gather(futures) == right(50)
    path = tmp_path / "f.stageprof"
    assert main(["attach", secured.address, "--dump", "-o", str(path), "--no-summary"]) == 0
    recording = stageprof.open(path)
    assert int((recording.tasks()["prefix"] == "flown").sum()) == 50
    assert recording.coverage()["flight"]["address"].startswith("tls://")
    assert recording.coverage()["batches_lost"] == 0


def test_it_is_recorded_from_outside_over_tls(
    secured: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust(monkeypatch, secured.papers)
    path = tmp_path / "a.stageprof"
    line = ["attach", secured.address, "--for", "1s", "-o", str(path), "--no-summary"]
    assert main(line) == 0
    recording = stageprof.open(path)
    assert recording.complete
    assert recording.coverage()["instrumented"] == 1


@pytest.mark.parametrize("known", ["another authority", "nothing"])
def test_who_has_no_papers_for_it_is_told_in_one_line(
    known: str,
    secured: Secured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And the cluster goes on."""
    if known != "nothing":
        trust(monkeypatch, issued(tmp_path / "others"))
    path = tmp_path / "f.stageprof"
    assert main(["attach", secured.address, "--dump", "-o", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"stageprof: no scheduler at {secured.address} (")
    assert err.count("\n") == 1
    assert not path.exists()
    assert secured.client.submit(inc, 1).result() == 2


def trust(monkeypatch: pytest.MonkeyPatch, papers: Papers) -> None:
    """As whoever has these papers and sets Dask up for them."""
    import dask

    comm = dask.config.config["distributed"]["comm"]
    client = {"cert": papers.cert, "key": papers.key}
    monkeypatch.setitem(comm, "tls", comm["tls"] | {"ca-file": papers.ca, "client": client})


@pytest.mark.nightly
def test_a_local_cluster_with_temporary_certificates_is_recorded() -> None:
    """`Security.temporary()`: certificates that are in memory only."""
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=False,
            protocol="tls", security=Security.temporary(),
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        with stageprof.profile() as prof:
            assert client.gather(client.map(inc, range(100), pure=False)) == right(100)
        clusters.soon(lambda: remains.everywhere(client) == [], 10)
    closed(prof.recording)
    assert prof.recording.coverage()["instrumented"] == 2
