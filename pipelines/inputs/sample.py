"""A sample of a file and a profile of its columns, without Spark: enough to see what a log has."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from pipelines.inputs.foreign import FILES
from pipelines.inputs.formats.ubi_export import RESPONSES
from pipelines.inputs.unreadable import PARQUET, explain_failure, refuse_folder
from schemas.errors import InputError
from schemas.redact import HIDDEN, cut_text, is_secret_name

MAX_ROWS = 10_000
MAX_BYTES = 16 << 20  # of text
MAX_PATH = 500  # characters of a path in a message
_SHOWN = 20  # values of a column
_TREC = {
    "trec_run": ("query_id", "", "doc_id", "rank", "score", "system"),
    "trec_qrels": ("query_id", "", "doc_id", "grade"),
}
_MSMARCO = {
    "rankings": ("query_id", "doc_id", "rank"),
    "queries": ("query_id", "query"),
    "documents": ("doc_id", "text"),
}
_SEPARATORS = (",", "\t", ";", "|")
_LONG_TEXT = 100  # characters; passages have more on average, queries fewer
_BEIR = {"queries": "queries.jsonl", "documents": "corpus.jsonl"}
_GA4 = {"event_name", "event_params", "items"}


@dataclass(frozen=True)
class FileSample:
    """The first rows of a file, or of the first file of a folder, and the format they are in."""

    path: str
    format: str
    rows: pa.Table
    options: Mapping[str, str] = field(default_factory=dict)  # of the format
    tables: tuple[str, ...] = ()  # those that a preset gives from these files, where it is not all of its tables
    file: str = ""  # the file of a folder that was read


@dataclass(frozen=True)
class ColumnProfile:
    """A column or a field, by its path: `a.b` is a field, `a[]` the elements of an array."""

    path: str
    type: str
    rows: int
    empty: int
    distinct: int
    smallest: Any
    largest: Any
    values: tuple[str, ...]

    @property
    def is_number(self) -> bool:
        return isinstance(self.smallest, int | float)


def list_parts(path: str) -> list[str]:
    """The tables of a folder of MS MARCO, which lie side by side there; any other path as it is."""
    folder = Path(path)
    if not any(_is_qrels(file) for file in _list_folder(folder)):
        return [path]
    return [str(part) for part in _list_folder(folder) if not part.is_dir() or _list_folder(part)]


def _is_qrels(file: Path) -> bool:
    return file.is_file() and re.fullmatch(r"(?i)qrels.*\.tsv(\.gz)?", file.name) is not None


def _list_folder(folder: Path) -> list[Path]:
    """What a folder shows, in order; nothing where it is none."""
    try:
        return sorted(part for part in folder.iterdir() if not part.name.startswith((".", "_")))
    except (OSError, ValueError):  # a file, or a name that no file can have
        return []


def sample_file(path: str) -> FileSample:
    """Read the first rows of a file or a folder."""
    file = _find_first_file(Path(path))
    try:
        sample = _sample_beir(Path(path)) or _sample_any(path, file)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, pa.ArrowException) as error:
        problem, hint = explain_failure(error, file)
        raise InputError(f"cannot read the file: {problem}", where=str(file), hint=hint) from None
    return sample if sample.file or file == Path(path) else _name_folder(sample, file)


def _name_folder(sample: FileSample, file: Path) -> FileSample:
    """The sample with the folder that has the file: Spark reads only those subfolders that are named like `dt=…`."""
    inside = file.relative_to(sample.path)
    above = list(itertools.takewhile(lambda part: "=" not in part, inside.parts[:-1]))
    return replace(sample, path=str(Path(sample.path, *above)), file=str(Path(*inside.parts[len(above) :])))


def profile_columns(table: pa.Table) -> list[ColumnProfile]:
    """Describe every column, with the fields of structs and the elements of arrays."""
    columns = zip(table.column_names, table.columns, strict=True)  # by place: names may be there twice
    return [profile for name, values in columns for profile in _profile(name, values.combine_chunks())]


def _find_first_file(path: Path) -> Path:
    try:
        exists = path.exists()
    except (OSError, ValueError):  # a name that no file can have
        exists = False
    if not exists:
        raise InputError("there is no such file", where=cut_text(str(path), MAX_PATH), hint="check the path")
    if not path.is_dir():
        return path
    for folder, folders, names in os.walk(path, onerror=refuse_folder):
        folders.sort()
        for name in sorted(names):
            if not name.startswith((".", "_")):
                return Path(folder, name)
    raise InputError("the folder has no files", where=str(path), hint="check the path")


def _sample_any(path: str, file: Path) -> FileSample:
    content = _read_start(file)
    if not content:
        raise InputError("the file is empty", where=str(file), hint="check the path")
    if file.suffix not in (".parquet", ".pq") and content[:4] != PARQUET:
        return _sample_text(path, file, content)
    source = pa.parquet.ParquetFile(file)
    batches = itertools.islice(source.iter_batches(MAX_ROWS), 1)
    rows = pa.Table.from_batches(list(batches), source.schema_arrow)
    names = set(rows.column_names)
    if names >= _GA4:
        return FileSample(path, "ga4", rows, {} if file.suffix == ".parquet" else {"files": "parquet"})
    if names >= {"query-id", "corpus-id", "score"} or names >= {"product_id", "esci_label"} or _has_passages(rows):
        return FileSample(path, "huggingface", rows, tables=("judgments",))
    if names >= {"_id", "text"}:
        return FileSample(path, "huggingface", rows, tables=(_guess_texts(file, rows),))
    return FileSample(path, "parquet", rows)


def _has_passages(rows: pa.Table) -> bool:
    kind = rows.schema.field("passages").type if "passages" in rows.column_names else pa.null()
    return bool(pa.types.is_struct(kind)) and kind.get_field_index("passage_text") >= 0


def _guess_texts(file: Path, rows: pa.Table) -> str:
    """Whether ids with texts are queries or documents: by the name of the file, or by titles."""
    named = _guess_by_name(file)
    titles = rows["title"].drop_null().to_pylist() if "title" in rows.column_names else []
    return named or ("documents" if any(titles) else "queries")


def _guess_by_name(file: Path) -> str | None:
    parts = {"quer": "queries", "topic": "queries", "corpus": "documents", "collection": "documents"}
    return next((table for part, table in parts.items() if part in file.name.lower()), None)


def _sample_beir(folder: Path) -> FileSample | None:
    """The judgments of a BEIR data set, if the folder is one."""
    tables = [table for table, name in _BEIR.items() if (folder / name).is_file()]
    splits = sorted((folder / "qrels").glob("*.tsv"))
    if not tables or not splits:
        return None
    file = next((split for split in splits if split.stem == "test"), splits[0])
    rows = _sample_csv(str(folder), _read_start(file), "\t").rows
    options = {} if file.stem == "test" else {"split": file.stem}
    return FileSample(str(folder), "beir", rows, options, ("judgments", *tables), f"qrels/{file.name}")


def _read_start(file: Path) -> bytes:
    opener: Any = gzip.open if file.suffix == ".gz" else open
    stream: IO[bytes]
    with opener(file, "rb") as stream:
        return stream.read(MAX_BYTES)


def _sample_text(path: str, file: Path, content: bytes) -> FileSample:
    if len(content) == MAX_BYTES:  # the last line may be cut
        content = content[: content.rfind(b"\n") + 1]
        if not content:
            raise InputError(f"its first line has more than {MAX_BYTES >> 20} MB", where=str(file))
    text = content.decode("utf-8-sig")  # without a mark of the byte order
    lines = [line for line in text.splitlines()[: MAX_ROWS * 2] if line.strip()]
    if not lines:
        raise InputError("the file is empty", where=str(file), hint="check the path")
    if len(lines) > 1 and re.match(r"\[\s*(\{|$)", lines[0].strip()):
        hint = f"write one object per line: jq -c '.[]' {file.name}"
        raise InputError("the file is a JSON array over several lines", where=str(file), hint=hint)
    documents = list(_parse_documents(lines, content))
    if documents:
        rows = _build_table(documents[:MAX_ROWS])
        name = _guess_json_format(rows)
        return FileSample(path, name, rows, tables=(_guess_texts(file, rows),) if name == "beir" else ())
    sample = _sample_trec(path, lines) or _sample_msmarco(path, file, lines)
    return sample or _recognise_ubi(_sample_csv(path, content, max(_SEPARATORS, key=lines[0].count)), file)


def _sample_csv(path: str, content: bytes, separator: str) -> FileSample:
    parse = pa.csv.ParseOptions(delimiter=separator, newlines_in_values=True)
    rows = pa.csv.read_csv(BytesIO(content), parse_options=parse).slice(0, MAX_ROWS)
    return FileSample(path, "csv", rows, {} if separator == "," else {"sep": separator})


def _recognise_ubi(sample: FileSample, file: Path) -> FileSample:
    """The searches or events of UBI, if the columns are theirs; the file's name may not say that it is CSV."""
    names = {name.removeprefix("_source.") for name in sample.rows.column_names}
    is_search = "user_query" in names and bool(names & set(RESPONSES))
    if "query_id" not in names or not ("action_name" in names or is_search):
        return sample
    files = {} if FILES.get(file.with_name(file.name.removesuffix(".gz")).suffix) == "csv" else {"files": "csv"}
    return replace(sample, format="ubi", options=files | dict(sample.options))


def _sample_trec(path: str, lines: list[str]) -> FileSample | None:
    """A run or qrels, as they are read: without comments, and without what follows the tag of a run."""
    parts = [line.split() for line in lines[:MAX_ROWS] if not line.lstrip().startswith("#")]
    lengths = {len(part) for part in parts}
    if parts and min(lengths) >= len(_TREC["trec_run"]) and parts[0][1] == "Q0":
        name = "trec_run"
    elif lengths == {len(_TREC["trec_qrels"])} and all(re.fullmatch(r"-?\d+", part[-1]) for part in parts):
        name = "trec_qrels"
    else:
        return None
    columns = zip(_TREC[name], zip(*parts, strict=False), strict=False)
    rows = pa.table({field: list(values) for field, values in columns if field})
    judged, read = ({tuple(part[at] for at in places) for part in parts} for places in ((0, 2), (0, 1, 2)))
    if name == "trec_qrels" and len(judged) < len(read):
        name = "trec_diversity_qrels"  # a document has lines for several subtopics
    return FileSample(path, name, rows)


def _sample_msmarco(path: str, file: Path, lines: list[str]) -> FileSample | None:
    """A file of MS MARCO: fields between tabs, without a header."""
    parts = [line.split("\t") for line in lines[:MAX_ROWS]]
    lengths = {len(part) for part in parts}
    if re.fullmatch(r"[A-Za-z]?\d+", parts[0][0]) is None:
        return None
    if lengths == {3} and all(part[2].strip().isdigit() for part in parts):
        table = "rankings"
    elif lengths == {2}:
        length = sum(len(part[1]) for part in parts) / len(parts)
        table = _guess_by_name(file) or ("documents" if length > _LONG_TEXT else "queries")
    elif lengths == {4} and all(part[1].startswith("http") for part in parts):
        table, parts = "documents", [[part[0], part[3]] for part in parts]
    else:
        return None
    rows = pa.table(dict(zip(_MSMARCO[table], map(list, zip(*parts, strict=True)), strict=True)))
    return FileSample(path, "msmarco", rows, tables=(table,))


def _parse_documents(lines: list[str], content: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of the lines, or of the whole file; none where it has none."""
    if len(lines) == 1 and lines[0].lstrip().startswith("[{"):  # an array on one line, which Spark reads as its rows
        yield from (document for document in json.loads(content) if isinstance(document, dict))
        return
    if not any(line.lstrip().startswith("{") or "\t{" in line for line in lines[:2]):
        return
    for line in lines:
        try:
            document = json.loads(line[line.find("{") :])
        except ValueError:
            continue
        if isinstance(document, dict) and not _is_action(document):
            source = document.get("_source")
            yield source if isinstance(source, dict) else document
    if len(lines) > 1 and lines[0].strip() == "{":
        yield json.loads(content)


def _is_action(document: dict[str, Any]) -> bool:
    """Whether a line of a bulk file says where the next line goes."""
    return len(document) == 1 and next(iter(document)) in ("index", "create", "update", "delete")


def _build_table(documents: list[dict[str, Any]]) -> pa.Table:
    """The documents as a table; values whose types differ from row to row are text."""
    names = dict.fromkeys(name for document in documents for name in document)
    columns = {}
    for name in names:
        values = [document.get(name) for document in documents]
        try:
            column = pa.array(values)
        except (pa.ArrowException, OverflowError, UnicodeEncodeError):  # also numbers beyond 64 bits, half characters
            column = pa.array([None if value is None else _encode(str(value)) for value in values])
        columns[_encode(name)] = column
    return pa.table(columns)


def _encode(text: str) -> str:
    r"""The text with halves of surrogate pairs, which no encoding has, as `\ud800`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _guess_json_format(rows: pa.Table) -> str:
    names = set(rows.column_names)
    if "judgmentRatings" in names or ("query_id" in names and names & {"action_name", "user_query"}):
        return "ubi"
    if names >= {"_id", "text"} and names <= {"_id", "text", "title", "metadata"}:
        return "beir"
    return "ga4" if names >= _GA4 else "json"


def _profile(path: str, values: pa.Array) -> Iterator[ColumnProfile]:
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind = values.type
    if pa.types.is_struct(kind):
        for place, field in enumerate(kind):
            yield from _profile(f"{path}.{field.name}", pc.struct_field(values, place))
        return
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _profile(f"{path}[]", values.flatten())
        return
    if pa.types.is_dictionary(kind):
        values = values.dictionary_decode()
    present = _drop_empty(values)
    smallest, largest = _find_ends(present)
    distinct = _list_distinct(present)
    shown = tuple(str(_read_scalar(value)) for value in distinct[:_SHOWN])
    if is_secret_name(path):
        smallest, largest, shown = None, None, (HIDDEN,) if shown else ()
    yield ColumnProfile(
        path=path,
        type=str(kind),
        rows=len(values),
        empty=len(values) - len(present),
        distinct=len(distinct),
        smallest=smallest,
        largest=largest,
        values=shown,
    )


def _drop_empty(values: pa.Array) -> pa.Array:
    """The values that are there: neither null nor, as in CSV, text without a character."""
    present = values.drop_null()
    is_text = pa.types.is_string(present.type) or pa.types.is_large_string(present.type)
    return present.filter(pc.not_equal(pc.utf8_trim_whitespace(present), "")) if is_text else present


def _find_ends(values: pa.Array) -> tuple[Any, Any]:
    """The smallest and the largest value, where the values have an order."""
    if not len(values) or pa.types.is_boolean(values.type):
        return None, None
    try:
        ends = pc.min_max(values)
    except pa.ArrowNotImplementedError:
        return None, None
    return _read_scalar(ends["min"]), _read_scalar(ends["max"])


def _list_distinct(values: pa.Array) -> pa.Array:
    """The distinct values, where Arrow can compare the values."""
    try:
        return values.unique()
    except pa.ArrowNotImplementedError:
        return values[:0]


def _read_scalar(scalar: pa.Scalar) -> Any:
    """The value in Python; a time that Python cannot have as the number that is stored."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError, LookupError):  # the last by an unknown time zone
        return getattr(scalar, "value", None)
