"""File access on a local disk, HDFS or an object store."""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from pipelines.warehouse.conditional_put import create_object, open_s3
from pipelines.warehouse.owner import name_process
from schemas.errors import ConfigurationError, PublishError, UnknownOutcomeError
from schemas.redact import cut_text

PART = ".part"  # ends the name of a file that is being written
_LOCAL = re.compile(r"file:(?:///|/(?!/))")  # as in URIs, and as Hadoop prints it
_NO_BUCKET = re.compile(r"(?:s3a?|gs):///*")


class Storage:
    """A folder, given as a path or a URI."""

    def __init__(self, location: str) -> None:
        local = _strip_scheme(location)
        if local is not None:
            # Spark takes a path literally, so it must not be percent-encoded.
            self._files, self._root = fs.LocalFileSystem(), _resolve(local)
            self.uri = f"file://{self._root}"
            return
        self.uri = location
        if _NO_BUCKET.fullmatch(location):
            raise ConfigurationError(f"cannot use the warehouse {location!r}: it names no bucket", where="warehouse")
        try:
            is_s3 = location.startswith(("s3://", "s3a://"))
            self._files, self._root = open_s3(location) if is_s3 else fs.FileSystem.from_uri(location)
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"cannot use the warehouse {location!r}: {error}", where="warehouse") from None

    def path(self, *parts: str) -> str:
        """Return the URI of a file or folder, for Spark and other readers."""
        return "/".join((self.uri.rstrip("/"), *parts))

    def local(self, name: str) -> str:
        """Return the path of a file or folder on the local disk."""
        return self._at(name)

    @property
    def is_local(self) -> bool:
        """Whether the folder is one of this machine; on a cluster, of all machines."""
        return bool(self._files.type_name == "local")

    @property
    def renames(self) -> bool:
        """Whether files and folders are renamed in one atomic step; object stores cannot, but put files atomically."""
        return self._files.type_name in ("local", "hdfs", "subtree")

    def put(self, name: str, content: str) -> None:
        """Write a file atomically: a reader sees all of it or nothing, also after a power failure."""
        target = self._at(name)
        part = f"{target}.{uuid.uuid4().hex[:8]}.{name_process()}{PART}" if self.renames else None
        try:
            self._files.create_dir(target.rpartition("/")[0], recursive=True)
            if part is not None:
                self._write(part, content)
                self._files.move(part, target)
                self._sync(target.rpartition("/")[0])
            else:
                self._write(target, content)
        except OSError as error:
            with suppress(OSError):  # a full disk has little space, and the unfinished file has some of it
                if part is not None:
                    self._remove(part)
            raise PublishError(
                f"cannot write: {error}", where=self.path(name), hint="check that the warehouse is writable"
            ) from None

    def create(self, name: str, content: str) -> None:
        """Write a new file atomically; on S3 in one conditional put, whose outcome is known when this returns."""
        if self._files.type_name != "s3":
            self.put(name, content)
            return
        try:
            outcome = create_object(self._at(name), content.encode())
        except OSError as error:
            raise PublishError(
                f"cannot write: {error}", where=self.path(name), hint="check that the warehouse is writable"
            ) from None
        if outcome == "conflict":
            raise PublishError("another process has written this file with other content", where=self.path(name))
        if outcome == "unknown":
            raise UnknownOutcomeError(
                "the store does not answer, so it is not known whether the run is committed",
                where=self.path(name),
                hint="when it answers again, `assay runs` says; run the same command again if the run is missing",
            )

    def _write(self, target: str, content: str) -> None:
        if self.is_local:
            with Path(target).open("wb") as file:
                file.write(content.encode())
                file.flush()
                os.fsync(file.fileno())
            return
        with self._files.open_output_stream(target) as stream:
            stream.write(content.encode())

    def _sync(self, folder: str) -> None:
        """Make a rename in this folder survive a power failure."""
        if self.is_local:
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def move(self, name: str, target: str) -> None:
        """Rename a file or folder in one atomic step."""
        self._files.create_dir(self._at(target).rpartition("/")[0], recursive=True)
        self._files.move(self._at(name), self._at(target))

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        return bool(self._files.get_file_info(self._at(name)).type != fs.FileType.NotFound)

    def get(self, name: str) -> str:
        """Read a text file."""
        with self._files.open_input_stream(self._at(name)) as stream:
            return bytes(stream.read()).decode()

    def dataset(self, name: str) -> ds.Dataset:
        """Open the Parquet files under `name` without Spark."""
        return ds.dataset(self._at(name), filesystem=self._files, format="parquet")

    def write_parquet(self, name: str, table: pa.Table) -> None:
        """Write a table as one Parquet file in the folder `name`."""
        self._files.create_dir(self._at(name), recursive=True)
        pq.write_table(table, f"{self._at(name)}/part-00000.parquet", filesystem=self._files)

    def copy(self, name: str, source: Storage, origin: str) -> None:
        """Copy the folder `origin` of another storage to `name`, file by file."""
        self._files.create_dir(self._at(name), recursive=True)
        fs.copy_files(
            source._at(origin), self._at(name), source_filesystem=source._files, destination_filesystem=self._files
        )

    def read_footer(self, name: str) -> pq.FileMetaData:
        """Read the schema and the number of rows of a Parquet file."""
        with self._files.open_input_file(self._at(name)) as file:
            return pq.read_metadata(file)

    def list(self, name: str = "", *, suffix: str = "", recursive: bool = False) -> Iterator[str]:
        """Yield the files and folders under `name`, relative to this folder; nothing if `name` is not a folder."""
        if self._files.get_file_info(self._at(name)).type == fs.FileType.File:
            return
        selector = fs.FileSelector(self._at(name), allow_not_found=True, recursive=recursive)
        for info in sorted(self._files.get_file_info(selector), key=lambda info: str(info.path)):
            if info.path.endswith(suffix):
                yield info.path.removeprefix(self._root.rstrip("/") + "/")

    def age(self, name: str) -> float:
        """Return the seconds since the newest file or folder at or under `name` was written; infinite without one."""
        infos = [self._files.get_file_info(self._at(name))]
        if infos[0].type == fs.FileType.Directory:
            selector = fs.FileSelector(self._at(name), recursive=True, allow_not_found=True)
            infos += self._files.get_file_info(selector)
        times = [info.mtime_ns / 1e9 for info in infos if info.mtime_ns]
        return time.time() - max(times) if times else float("inf")

    def measure(self, name: str, *, suffix: str = "") -> tuple[int, int]:
        """Return the number of files under `name` and their size in bytes."""
        infos = self._files.get_file_info(fs.FileSelector(self._at(name), allow_not_found=True, recursive=True))
        sizes = [info.size for info in infos if info.type == fs.FileType.File and info.path.endswith(suffix)]
        return len(sizes), sum(sizes)

    def delete(self, name: str) -> None:
        """Remove a file, or a folder with its content, if it exists; of a symbolic link, only the link."""
        if not name or name.startswith("/") or {"..", ".", ""} & set(name.split("/")):
            raise PublishError(f"refused to delete {name!r}, which is not a name inside the folder", where=self.uri)
        try:
            self._remove(self._at(name))
        except PermissionError as error:
            hint = "let the user that runs this command write to the warehouse"
            raise PublishError(f"cannot delete: {error}", where=self.path(name), hint=hint) from None

    def _remove(self, path: str) -> None:
        if self.is_local and Path(path).is_symlink():
            Path(path).unlink()
            return
        info = self._files.get_file_info(path)
        if info.type == fs.FileType.Directory:
            self._files.delete_dir(path)
        elif info.type == fs.FileType.File:
            self._files.delete_file(path)

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root


def _strip_scheme(location: str) -> str | None:
    """The path of a folder on the local disk; None for a URI of another file system."""
    if not location.startswith("file:"):
        return None if "://" in location else location
    match = _LOCAL.match(location)
    if match is None:  # without a path it would be the working directory
        problem = f"cannot use the warehouse {location!r}: a URI of a local folder has three slashes and its path"
        raise ConfigurationError(problem, where="warehouse", hint="write file:///path/of/the/folder, or the path alone")
    return f"/{location[match.end() :]}"


def _resolve(path: str) -> str:
    """The absolute path; refuses one that no file system can have, before anything is read or written."""
    try:
        folder = Path(path).resolve()
        with suppress(PermissionError):  # reported by whoever reads or writes
            folder.exists()
    except (OSError, ValueError, RuntimeError) as error:  # too long, with a NUL, a link to itself
        problem = error.strerror if isinstance(error, OSError) else error
        place = cut_text(path, 200)
        raise ConfigurationError(f"cannot use the folder {place!r}: {problem}", where="warehouse") from None
    return str(folder)
