"""One trial's folder: where its logs, submission and verdicts lie, and how an unfinished try is put aside."""

from pathlib import Path

from results.files import sync_folder, write_atomically
from results.records import TrialRecord, Verdict

TRIES = "tries"


class TrialFolder:
    """``trials/<trial id>/``.

    ::

        trial.json            the record, written last and atomically, never rewritten: without it, unfinished
        agent/                raw logs as they came, agent/trajectory.json (ATIF v1.7)
        submission/           what was collected
        verifier/             verdict.json and log.txt; a rescore writes verifier.1/, verifier.2/ ...
        tries/<n>/            the same, of tries that broke or were interrupted; a broken one's record is try.json
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def record_file(self) -> Path:
        return self.path / "trial.json"

    @property
    def agent(self) -> Path:
        return self.path / "agent"

    @property
    def trajectory(self) -> Path:
        return self.agent / "trajectory.json"

    @property
    def submission(self) -> Path:
        return self.path / "submission"

    @property
    def verifier(self) -> Path:
        """The newest verifier folder: that of the last rescore, else ``verifier``."""
        rescores = self._rescores()
        return rescores[-1] if rescores else self.path / "verifier"

    @property
    def verdict(self) -> Path:
        """The newest ``verdict.json``."""
        return self.verifier / "verdict.json"

    @property
    def tries(self) -> list[Path]:
        """Folders of the tries put aside, oldest first."""
        return sorted((self.path / TRIES).glob("[0-9]*"), key=lambda path: int(path.name))

    @property
    def finished(self) -> bool:
        return self.record_file.is_file()

    def begin(self) -> None:
        """Make the folders of a fresh try; what an unfinished one left goes to ``tries/<n>/``.

        Raises:
            FileExistsError: the trial is finished; its record is never rewritten.
        """
        if self.finished:
            raise FileExistsError(f"{self.record_file} exists: a finished trial is never run again in place")
        self.shelve()
        for folder in (self.agent, self.submission, self.path / "verifier"):
            folder.mkdir(parents=True, exist_ok=True)

    def shelve(self) -> Path | None:
        """Move everything of the present try to ``tries/<n>/`` and return that, or null where there is nothing."""
        if self.finished:
            raise FileExistsError(f"{self.record_file} exists: a finished trial is not put aside")
        leftovers = [entry for entry in self.path.glob("*") if entry.name != TRIES]
        if not leftovers:
            return None
        past = self.tries
        target = self.path / TRIES / str(int(past[-1].name) + 1 if past else 1)
        target.mkdir(parents=True)
        for entry in leftovers:
            entry.rename(target / entry.name)
        sync_folder(target)
        return target

    def next_verifier(self) -> Path:
        """Make and return the folder for a verdict: ``verifier`` first, then ``verifier.1``, ``verifier.2`` ..."""
        first = self.path / "verifier"
        if not (first / "verdict.json").exists() and not self._rescores():
            first.mkdir(parents=True, exist_ok=True)
            return first
        rescores = self._rescores()
        number = int(rescores[-1].name.removeprefix("verifier.")) + 1 if rescores else 1
        folder = self.path / f"verifier.{number}"
        folder.mkdir()
        return folder

    def write_record(self, record: TrialRecord) -> None:
        """Write ``trial.json``; refuses to write it twice."""
        if self.finished:
            raise FileExistsError(f"{self.record_file} exists: a record is never rewritten")
        self.path.mkdir(parents=True, exist_ok=True)
        write_atomically(self.record_file, record.model_dump_json(indent=1) + "\n")

    def write_try(self, record: TrialRecord) -> None:
        """Write the record of a try that broke and will be repeated; it moves to ``tries/<n>/`` with the rest."""
        write_atomically(self.path / "try.json", record.model_dump_json(indent=1) + "\n")

    def read_record(self) -> TrialRecord:
        return TrialRecord.model_validate_json(self.record_file.read_bytes())

    def read_verdict(self) -> Verdict | None:
        """Return the newest verdict, or null where none was reached."""
        return Verdict.model_validate_json(self.verdict.read_bytes()) if self.verdict.is_file() else None

    def _rescores(self) -> list[Path]:
        found = [p for p in self.path.glob("verifier.*") if p.name.removeprefix("verifier.").isdecimal()]
        return sorted(found, key=lambda path: int(path.name.removeprefix("verifier.")))
