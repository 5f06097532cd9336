"""The manifest of a backup: its creation time, the rows and columns of each table, and the hash of each file."""

import hashlib
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from newton.errors import InputError

FILE_NAME = "backup.json"
FORMAT = 3
MAX_BYTES = 20_000_000  # of the manifest, which is read into memory


class BackupManifest(BaseModel):
    """The manifest of a backup.

    `rows` and `columns` have the number of rows and the columns of each table, `migrations` the hash of each applied
    migration; `sha256` is a hash of the manifest itself.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = FORMAT
    made_at: AwareDatetime
    newton: str
    postgres: str
    rows: dict[str, int]
    columns: dict[str, tuple[str, ...]]
    migrations: dict[str, str]
    files: dict[str, str]
    sha256: str = ""

    def compute_checksum(self) -> str:
        return hashlib.sha256(self.model_dump_json(exclude={"sha256"}).encode()).hexdigest()


def write_manifest(folder: Path, manifest: BackupManifest) -> None:
    signed = manifest.model_copy(update={"sha256": manifest.compute_checksum()})
    (folder / FILE_NAME).write_text(signed.model_dump_json(indent=1) + "\n", encoding="utf-8")


def verify_backup(folder: Path) -> BackupManifest:
    """Check all files of a backup; return its manifest. Raises InputError if a file differs or is missing."""
    manifest = _read(folder)
    if odd := [path for path in folder.rglob("*") if path.is_symlink() or not (path.is_file() or path.is_dir())]:
        raise damaged_error(folder, f"{odd[0]} is a link or a device")  # a link could name a file elsewhere
    hashes = hash_files(folder)
    if missing := manifest.files.keys() - hashes.keys():
        raise damaged_error(folder, f"{min(missing)} is missing")
    if unknown := hashes.keys() - manifest.files.keys():
        raise damaged_error(folder, f"{min(unknown)} is not a file of the backup")
    if changed := [name for name, digest in manifest.files.items() if hashes[name] != digest]:
        raise damaged_error(folder, f"{min(changed)} was changed")
    return manifest


def _read(folder: Path) -> BackupManifest:
    try:
        with (folder / FILE_NAME).open("rb") as file:
            written = file.read(MAX_BYTES)
        manifest = BackupManifest.model_validate_json(written)
    except FileNotFoundError:
        hint = "Give a folder that `newton backup` created."
        raise InputError(f"{folder} is not a backup: it has no file {FILE_NAME}.", hint=hint) from None
    except NotADirectoryError:
        hint = "Give the folder that `newton backup` created, not a file."
        raise InputError(f"{folder} is not a folder.", hint=hint) from None
    except OSError as error:
        raise InputError(f"{folder} cannot be read: {error.strerror}.", hint="Give a folder you may read.") from None
    except ValidationError:
        raise damaged_error(folder, f"{FILE_NAME} was changed") from None
    if manifest.sha256 != manifest.compute_checksum() or written != manifest.model_dump_json(indent=1).encode() + b"\n":
        raise damaged_error(folder, f"{FILE_NAME} was changed")
    if manifest.format != FORMAT:
        what = f"The backup has format {manifest.format}, and this version of Newton reads format {FORMAT}."
        raise InputError(what, hint=f"Use Newton {manifest.newton}, which made the backup.")
    return manifest


def hash_files(folder: Path) -> dict[str, str]:
    """Return the SHA-256 hash of each file in the folder and its subfolders by relative path, except the manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / FILE_NAME)
    return {path.relative_to(folder).as_posix(): _hash_file(path) for path in files}


def _hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damaged_error(folder: Path, reason: str) -> InputError:
    """Return the error for a backup that was changed after it was made."""
    return InputError(f"The backup {folder} is damaged: {reason}. Nothing was changed.", hint="Use another backup.")
