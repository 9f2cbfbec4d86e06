"""Every shape of secret is hidden, and what is none stays readable."""

import json
import time

import pytest

import schemas.redact
from schemas.redact import HIDDEN, cut_text, is_secret_name, redact, redact_text, remember_secrets

SECRET = "hunter2-Xyz"
# Thirty shapes and more, as they occur in URIs, options, headers, logs and error messages.
SHAPES = [
    "https://me:{}@mlflow.example.com/api",
    "https://{}@mlflow.example.com",
    "https:/me:{}@mlflow.example.com/conf.yaml",
    "s3:/AKID:{}@bucket/path",
    "x://me:{}@host",
    "https://me:p/{}@host:5000/path",
    "https://me:p@{}@host/x",
    "https://me:a&{}&b@host/x",
    "https://me:a?b#{}@host",
    "https://:{}@host",
    "me:{}@localhost:9091",
    "me:{}@127.0.0.1",
    "postgresql+psycopg2://me:{}@db.example.com:5432/mlflow",
    "s3a://AKID:{}@bucket/path",
    "https://host/x?access_token={}&v=1",
    "https://host/x?v=1&api_key={}",
    "https://host/x?X-Amz-Signature={}&X-Amz-Date=1",
    "https://host/x?X-Amz-Security-Token={}",
    "https://host/x?sv=2024&sig={}",
    "https://host/x#access_token={}",
    "jdbc:sqlserver://host;user=me;password={};encrypt=true",
    "jdbc:mysql://host/db?user=me&password=a&{}",
    "jdbc:oracle:thin:me/x@host?pwd={}",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}==;EndpointSuffix=x",
    "-Xmx1g -Djavax.net.ssl.trustStorePassword={} -Dx=1",
    '-Dhttps.proxyPassword="{} with spaces"',
    "--conf spark.hadoop.fs.s3a.secret.key={}",
    "PGPASSWORD={} psql",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "{{'password': '{}'}}",
    '{{"apiKey": "{}", "x": 1}}',
    '{{"private_key": "{}\\\\n"}}',
    'say {{\\"token\\": 1}} db.pass={}',
    "password: {}",
    "  secret_key: {}\n  next: line",
    "Max retries exceeded with url: /api?token={} (Caused by x)",
    "HTTPConnectionPool(host='h'): http://me:{}@h:1/a refused",
    "url=https://host/x?v=1&token={}",
    '{{"options": "-Da=b -Ddb.password={}"}}',
    "tracking.uri=https://me:{}@host",
    "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----",
    "//me:{}@host.example.com/x",
    "jdbc:oracle:thin:me/{}@host:1521/db",
    "https://host/login?next=https%3A%2F%2Fme%3A{}%40host%2Fx",
    "next=%2Fx%3Fclient_secret%3D{}&v=1",
    "password   =   {}",
    "password := {}",
    "password => {}",
    "password -> '{}'",
    "password='{}",
    "password  :  {}",
    "password: {} # of the test server",
    "pw={}",
    "mysql --password {} --host h",
    "['mysql', '--password', '{}', '-h']",
    "(spark.hadoop.fs.s3a.secret.key,{})",
    "[('a', 1), ('db.password', '{}')]",
    "<password>{}</password>",
    "<property><name>fs.s3a.secret.key</name><value>{}</value></property>",
    "Proxy-Authorization: Negotiate {}",
    "https://hooks.slack.com/services/T0/B0/{}",
]
TOKENS = [
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abcDEF123",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "glpat-0123456789abcdefghij",
    "xoxb-123456789012-abcdef",
    "dapi0123456789abcdef0123456789abcdef",
    "AKIAIOSFODNN7EXAMPLE",
    "npm_0123456789abcdefghijABCDEFGHIJ012345",
    "pypi-AgEIcHlwaS5vcmcCJDAxMjM0",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_a_text_is_hidden(shape: str) -> None:
    text = shape.format(SECRET)
    shown = redact_text(text)
    assert SECRET not in shown and HIDDEN in shown, shown
    assert redact_text(shown) == shown, "redacting twice changes nothing"
    within = json.dumps({"x": text})
    assert SECRET not in redact_text(within)
    json.loads(redact_text(within))  # is still JSON


@pytest.mark.parametrize("token", TOKENS)
def test_a_token_is_known_by_its_form(token: str) -> None:
    assert redact_text(f"got {token}, and went on") == f"got {HIDDEN}, and went on"


@pytest.mark.parametrize(
    "text",
    [
        "https://mlflow.example.com:5000/api/2.0/mlflow?run=7&page_token_kind",
        "abfss://container@account.dfs.core.windows.net/path/dt=2026-11-01",
        "s3a://bucket/a/b?versionId=3",
        "the segment 'device' has about 12 values: choose a coarser column",
        "✓ gate pass: ndcg@10 drop < 0.01 for new: delta +0.0100, its bound -0.0020 lies above",
        "gate=pass metric:ndcg@10 stage=score seconds=1.5",
        'assay_gate_conditions{verdict="pass"} 1.0',
        '{"tokens": 512, "passed": "yes"}',
        "unknown tokenizer 'x' (tokenizer=bm25)",
        "12:30:10 mail a@b.example",
        "sas_code",
        "columns (query_id, doc_id), --depth 10, [('bm25', 'new')], <name>bm25</name><value>3</value>",
        "a // b: c@d.example",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    "name",
    ["password", "fs.s3a.secret.key", "pwd", "db.pwd", "dbPwd", "pass", "apikey", "api_key", "X-Api-Key", "private_key",
     "accessKey", "sslKeystorePassword", "MLFLOW_TRACKING_TOKEN", "fs.azure.account.key.x", "sas", "client_secret",
     "passphrase", "Authorization"],
)  # fmt: skip
def test_a_secret_name(name: str) -> None:
    assert is_secret_name(name)
    assert redact({"a": [{name: SECRET}]}) == {"a": [{name: HIDDEN}]}


@pytest.mark.parametrize(
    "name", ["passed", "bypass", "design", "sassy", "tokenizer", "key", "keys", "compass", "column"]
)
def test_no_secret_name(name: str) -> None:
    assert not is_secret_name(name)
    assert redact({name: "x"}) == {name: "x"}


def test_keys_from_the_data_say_nothing_about_their_values() -> None:
    config = {"trained": {"token_model": "none"}, "spark": {"x.token": "abc"}}
    assert redact(config, names=["trained"]) == {"trained": {"token_model": "none"}, "spark": {"x.token": HIDDEN}}


def test_a_secret_of_the_configuration_is_hidden_wherever_it_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schemas.redact, "_known", set())
    remember_secrets(
        {
            "tracking": {"uri": "https://me:se/cret%20one@host"},
            "options": [{"password": "word two"}],
            "short": {"pwd": "abc"},
        }
    )
    assert redact_text("login with 'se/cret one' failed") == f"login with '{HIDDEN}' failed"
    assert redact_text("se/cret%20one; word two; abc") == f"{HIDDEN}; {HIDDEN}; abc"


@pytest.mark.parametrize("length", range(10, 120, 7))
def test_a_secret_is_hidden_before_a_text_is_cut(length: int) -> None:
    text = f"cannot reach https://me:{'hunter2-' * 20}@host.example/x: password={'hunter2-' * 20}, try again"
    assert "hunter" not in cut_text(text, length)
    assert len(cut_text(text, length)) <= length


@pytest.mark.parametrize("unit", ["//:", "a://:", "%3a%2f%2f", "('password', ", "--password ", "password='", "<name>"])
def test_the_time_grows_in_proportion_to_a_hostile_text(unit: str) -> None:
    seconds = []
    for size in (20_000, 160_000):
        start = time.process_time()
        redact_text(unit * (size // len(unit)))
        seconds.append(time.process_time() - start)
    assert seconds[1] < 24 * max(seconds[0], 0.005)  # eight times the text; 64 times the time if it were quadratic


def test_a_text_of_megabytes_is_cut_without_reading_it_all() -> None:
    secrets = "password=hunter2-Xyz, " * 50_000
    start = time.process_time()
    assert "hunter" not in cut_text("x" * 5_000_000, 40) + cut_text(secrets, 5_000)
    assert time.process_time() - start < 1
    assert cut_text("short", 40) == "short"
