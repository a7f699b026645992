"""JSON Schemas of the run folder's files, generated from the models: ``python -m results.schemas`` writes them."""

import json
from pathlib import Path

from pydantic import BaseModel

from results.records import Event, RunPlan, TrialRecord, Verdict

FOLDER = Path(__file__).parent / "schema"
MODELS: dict[str, type[BaseModel]] = {"run": RunPlan, "trial": TrialRecord, "event": Event, "verdict": Verdict}
"""File stem -> model; ``event`` is one line of ``events.jsonl``."""


def schema_text(name: str) -> str:
    """Return the schema of ``name`` as the file's text."""
    schema = MODELS[name].model_json_schema(mode="serialization")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(head | schema, indent=1) + "\n"


def write_schemas(folder: Path = FOLDER) -> None:
    for name in MODELS:
        (folder / f"{name}.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    write_schemas()
