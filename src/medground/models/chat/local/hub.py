"""Chat models of the Hugging Face hub by name, where there is a network: ``hub:ORG/NAME@COMMIT``.

The commit is part of the name, so that a result is known by the weights it was made with. Files are fetched once, into
the cache of ``huggingface_hub``, and read from there without a network afterwards.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints

from medground.errors import CheckpointError, ConfigError

PREFIX = "hub:"
HubName = Annotated[str, StringConstraints(pattern=f"^{PREFIX}")]
_NAME = re.compile(rf"{PREFIX}([\w.-]+/[\w.-]+)@([0-9a-f]{{40}})")
_FILES = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")


def fetched(name: str, *, code: bool = False, pickles: bool = False) -> Path:
    """Return the folder of a model of the hub, fetched where it is not on this machine yet.

    Args:
        name: ``hub:ORG/NAME@COMMIT``.
        code: fetch the model's Python files too.
        pickles: fetch pickled weights too.

    Raises:
        ConfigError: the name has another form.
        CheckpointError: the model is not on this machine and cannot be fetched.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(
            "a model of the hub is named with its commit",
            where="checkpoint",
            expected="hub:ORG/NAME@COMMIT, 40 hexadecimal digits",
            got=name,
            fix="the commit stands on the model's page under Files, History",
        )
    from huggingface_hub import snapshot_download

    repository, commit = match.groups()
    files = [*_FILES, *(["*.py"] if code else []), *(["*.bin"] if pickles else [])]
    try:
        return Path(snapshot_download(repository, revision=commit, allow_patterns=files))
    except (OSError, ValueError) as error:  # no network, no such model, no leave: all of them are one of these
        raise CheckpointError(
            "the model is not on this machine, and the hub does not give it",
            where=repository,
            got=f"{type(error).__name__}: {error}".splitlines()[0][:200],
            fix=f"where there is a network: hf download {repository} --revision {commit} --local-dir FOLDER; "
            "then checkpoint: FOLDER",
        ) from error
