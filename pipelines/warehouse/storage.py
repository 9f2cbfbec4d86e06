"""The few things that Assay asks of a file system, on a local disk, HDFS or an object store."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow.dataset as ds
from pyarrow import fs

from schemas.errors import ConfigurationError, PublishError


class Storage:
    """A folder somewhere, named by a path or a URI."""

    def __init__(self, place: str) -> None:
        local = place.removeprefix("file://") if place.startswith("file://") or "://" not in place else None
        if local is not None:
            # Spark takes a path as it is written, so nothing in it may be percent-encoded.
            self._files, self._root = fs.LocalFileSystem(), str(Path(local).resolve())
            self.uri = f"file://{self._root}"
            return
        self.uri = place
        try:
            # Spark says s3a where Arrow says s3.
            self._files, self._root = fs.FileSystem.from_uri(place.replace("s3a://", "s3://", 1))
        except (ValueError, OSError) as error:
            raise ConfigurationError(f"cannot use the warehouse {place!r}: {error}", where="warehouse") from None

    def path(self, *parts: str) -> str:
        """The URI of something in here, as Spark and other readers take it."""
        return "/".join((self.uri.rstrip("/"), *parts))

    def local(self, name: str) -> str:
        """The path of something in here on the disk of this machine."""
        return self._at(name)

    def put(self, name: str, content: str) -> None:
        """Write a whole file at once: a reader sees all of it or nothing."""
        target = self._at(name)
        try:
            self._files.create_dir(target.rpartition("/")[0], recursive=True)
            if self._files.type_name in ("local", "hdfs", "subtree"):
                part = f"{target}.{uuid.uuid4().hex}.part"
                self._write(part, content)
                self._files.move(part, target)
            else:
                self._write(target, content)  # a put of an object store is atomic
        except OSError as error:
            raise PublishError(
                f"cannot write: {error}", where=self.path(name), hint="check that the warehouse can be written to"
            ) from None

    def _write(self, target: str, content: str) -> None:
        with self._files.open_output_stream(target) as stream:
            stream.write(content.encode())

    def get(self, name: str) -> str:
        with self._files.open_input_stream(self._at(name)) as stream:
            return bytes(stream.read()).decode()

    def dataset(self, name: str) -> ds.Dataset:
        """The Parquet files under `name`, to be read without Spark."""
        return ds.dataset(self._at(name), filesystem=self._files, format="parquet")

    def list(self, name: str = "", *, suffix: str = "", recursive: bool = False) -> Iterator[str]:
        """Names of the files and folders under `name`, relative to this folder; none where it is no folder."""
        if self._files.get_file_info(self._at(name)).type == fs.FileType.File:
            return
        selector = fs.FileSelector(self._at(name), allow_not_found=True, recursive=recursive)
        for info in sorted(self._files.get_file_info(selector), key=lambda info: str(info.path)):
            if info.path.endswith(suffix):
                yield info.path.removeprefix(self._root.rstrip("/") + "/")

    def age(self, name: str) -> float:
        """Seconds since the newest file under `name` was written; infinite where there is none."""
        import time

        infos = self._files.get_file_info(fs.FileSelector(self._at(name), allow_not_found=True, recursive=True))
        times = [info.mtime_ns / 1e9 for info in infos if info.mtime_ns]
        return time.time() - max(times) if times else float("inf")

    def delete(self, name: str) -> None:
        """Remove a file or a folder with all it holds; nothing happens where it is missing."""
        info = self._files.get_file_info(self._at(name))
        if info.type == fs.FileType.Directory:
            self._files.delete_dir(self._at(name))
        elif info.type == fs.FileType.File:
            self._files.delete_file(self._at(name))

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}" if name else self._root
