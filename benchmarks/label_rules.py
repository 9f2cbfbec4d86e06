"""The default denoise rules as plain SQL for DuckDB: the peer in `label_scale`, and the oracle of the label stage.

It shares no code with the pipeline. A rule is a bit of `bits`, in the order of `RULES`; `one_user_dominates` keeps the
rows with the smallest `draw`, a number of the page that the log provides.
"""

from __future__ import annotations

import duckdb
from crawleruseragents import is_crawler

RULES = (
    "no_impression", "duplicate_event", "repeat_click", "known_bot", "too_many_queries", "clockwork", "short_dwell",
    "late_event", "everything_clicked", "internal_user", "sponsored", "repeated_result", "one_user_dominates",
    "unattributed",
)  # fmt: skip
NAMELESS = """
    user_id IS NULL OR lower(trim(user_id)) IN
    ('', 'anonymous', 'anon', 'guest', 'unknown', 'none', 'null', 'nan', 'undefined', '0', '-1', '-')
"""
SUSPECTS = f"""
    CREATE TEMP TABLE shown AS
    SELECT *, {NAMELESS} AS nameless, epoch_us(ts) // 86400000000 AS day,
        CASE WHEN nameless THEN concat_ws(':', 'agent', user_agent) ELSE user_id END AS suspect,
        CASE WHEN nameless THEN 'page:' || serp_id ELSE user_id END AS person
    FROM impressions;

    CREATE TEMP TABLE suspects AS
    WITH visits AS (
        SELECT suspect, CASE WHEN NOT nameless THEN serp_id END AS page, min(ts) AS ts,
            bool_or(coalesce(user_agent, '') IN (SELECT agent FROM crawlers)) AS crawler
        FROM shown GROUP BY ALL
    ), gaps AS (
        SELECT *, epoch_us(ts) // 86400000000 AS day,
            (epoch_us(ts) - lag(epoch_us(ts)) OVER (PARTITION BY suspect, day ORDER BY ts, page)) / 1e6 AS gap
        FROM visits
    ), days AS (
        SELECT suspect, day, count(*) AS pages, avg(gap) AS mean, stddev_samp(gap) AS deviation,
            bool_or(crawler) AS crawler
        FROM gaps GROUP BY ALL
    )
    SELECT suspect, day,
        CASE WHEN pages >= 50 THEN {{too_many_queries}} ELSE 0 END
        | CASE WHEN pages >= 10 AND deviation < 0.1 * mean THEN {{clockwork}} ELSE 0 END AS day_bits,
        CASE WHEN bool_or(crawler) OVER (PARTITION BY suspect) THEN {{known_bot}} ELSE 0 END AS user_bits
    FROM days;
"""
EVENTS = f"""
    CREATE TEMP TABLE placed AS
    WITH done AS (
        SELECT row_number() OVER () AS id, *, {NAMELESS} AS nameless FROM interactions
    ), clicks AS (
        SELECT user_id, doc_id, ts, event_id, serp_id FROM done WHERE kind = 'click' AND serp_id IS NOT NULL
    ), found AS (
        SELECT e.id, arg_max(c.serp_id, (c.ts, c.event_id)) AS page
        FROM done e JOIN clicks c ON c.user_id = e.user_id AND c.doc_id = e.doc_id AND c.ts <= e.ts
            AND epoch_us(e.ts) - epoch_us(c.ts) <= 7 * 86400000000
        WHERE e.serp_id IS NULL AND NOT e.nameless GROUP BY ALL
    )
    SELECT e.* EXCLUDE (serp_id), coalesce(e.serp_id, f.page) AS serp_id, epoch_us(e.ts) // 86400000000 AS day,
        CASE WHEN e.nameless THEN 'agent' ELSE e.user_id END AS suspect
    FROM done e LEFT JOIN found f USING (id);
"""
PAGES = """
    CREATE TEMP TABLE places AS
    WITH ordered AS (
        SELECT s.*, row_number() OVER (
                PARTITION BY serp_id, doc_id ORDER BY position, ts, query_id, user_id, system) AS nth,
            max(ts) OVER (PARTITION BY serp_id, doc_id) AS page_at
        FROM shown s
    ), users AS (
        SELECT suspect, max(user_bits) AS user_bits FROM suspects GROUP BY ALL
    )
    SELECT o.*, coalesce(d.day_bits, 0) | coalesce(u.user_bits, 0)
        | CASE WHEN starts_with(o.user_id, 'staff-') THEN {internal_user} ELSE 0 END
        | CASE WHEN coalesce(sponsored, false) THEN {sponsored} ELSE 0 END AS shown_bits
    FROM ordered o LEFT JOIN suspects d USING (suspect, day) LEFT JOIN users u USING (suspect);

    CREATE TEMP TABLE crowded AS
    SELECT p.serp_id FROM places p
    LEFT JOIN (SELECT DISTINCT serp_id, doc_id, true AS clicked FROM placed WHERE kind = 'click') c
        USING (serp_id, doc_id)
    WHERE nth = 1 GROUP BY p.serp_id HAVING count(*) >= 10 AND count(*) = count(clicked);

    CREATE TEMP TABLE acts AS
    WITH users AS (
        SELECT suspect, max(user_bits) AS user_bits FROM suspects GROUP BY ALL
    ), numbered AS (
        SELECT e.*, lag(event_id) OVER act AS previous, (epoch_us(ts) - lag(epoch_us(ts)) OVER act) / 1e6 AS since,
            row_number() OVER act AS nth,
            max(CASE WHEN kind = 'click' THEN dwell_seconds END) OVER (PARTITION BY serp_id, doc_id) AS longest,
            max(CASE WHEN kind <> 'click' THEN ts END) OVER (PARTITION BY serp_id, doc_id) AS converted
        FROM placed e WINDOW act AS (PARTITION BY serp_id, doc_id, kind ORDER BY ts, event_id)
    ), judged AS (
        SELECT n.*, p.shown_bits, p.page_at, (epoch_us(n.ts) - epoch_us(p.page_at)) / 1e6 AS after,
            coalesce(d.day_bits, 0) | coalesce(u.user_bits, 0)
            | CASE WHEN starts_with(n.user_id, 'staff-') THEN {internal_user} ELSE 0 END AS own
        FROM numbered n LEFT JOIN (SELECT * FROM places WHERE nth = 1) p USING (serp_id, doc_id)
        LEFT JOIN suspects d ON d.suspect = n.suspect AND d.day = n.day LEFT JOIN users u ON u.suspect = n.suspect
    )
    SELECT event_id, kind, serp_id, doc_id, user_id, own | coalesce(shown_bits, 0)
        | CASE WHEN serp_id IS NULL THEN {unattributed} ELSE 0 END
        | CASE WHEN serp_id IS NOT NULL AND page_at IS NULL THEN {no_impression} ELSE 0 END
        | CASE WHEN serp_id IS NOT NULL AND (event_id = previous OR since <= 2) THEN {duplicate_event} ELSE 0 END
        | CASE WHEN serp_id IS NOT NULL AND kind = 'click' AND nth > 1 THEN {repeat_click} ELSE 0 END
        | CASE WHEN kind = 'click' AND longest < 5 AND coalesce(converted < ts, true) THEN {short_dwell} ELSE 0 END
        | CASE WHEN after > CASE WHEN kind = 'click' THEN 1800 ELSE 7 * 86400 END THEN {late_event} ELSE 0 END
        | CASE WHEN serp_id IN (FROM crowded) THEN {everything_clicked} ELSE 0 END AS bits
    FROM judged;
"""
PAIRS = """
    CREATE TEMP TABLE fates AS
    WITH results AS (
        SELECT p.*, shown_bits | CASE WHEN nth > 1 THEN {repeated_result} ELSE 0 END
            | CASE WHEN serp_id IN (FROM crowded) THEN {everything_clicked} ELSE 0 END AS bits
        FROM places p
    ), kept AS (
        SELECT serp_id, doc_id, count(*) FILTER (kind = 'click') AS clicks, count(*) FILTER (kind = 'cart') AS carts,
            count(*) FILTER (kind = 'purchase') AS purchases
        FROM acts WHERE bits = 0 GROUP BY ALL
    ), counted AS (
        SELECT r.*, CASE WHEN r.bits = 0 THEN coalesce(clicks, 0) ELSE 0 END AS clicks,
            CASE WHEN r.bits = 0 THEN coalesce(carts, 0) ELSE 0 END AS carts,
            CASE WHEN r.bits = 0 THEN coalesce(purchases, 0) ELSE 0 END AS purchases
        FROM results r LEFT JOIN kept USING (serp_id, doc_id)
    ), pairs AS (
        SELECT *, sum(clicks) OVER (PARTITION BY query_id, doc_id) AS pair_clicks,
            sum(clicks) OVER one AS user_clicks, count(*) OVER one AS user_rows,
            row_number() OVER (PARTITION BY query_id, doc_id, person ORDER BY draw, serp_id, position) AS user_row
        FROM counted WHERE bits = 0 WINDOW one AS (PARTITION BY query_id, doc_id, person)
    )
    SELECT query_id, doc_id, position, person, clicks, carts, purchases,
        CASE WHEN user_clicks >= 5 AND user_clicks > 0.2 * pair_clicks AND user_row > ceil(
            user_rows * greatest(floor((pair_clicks - user_clicks) * 0.25), 1) / user_clicks)
        THEN {one_user_dominates} ELSE 0 END AS bits
    FROM pairs
    UNION ALL BY NAME
    SELECT query_id, doc_id, position, person, 0 AS clicks, 0 AS carts, 0 AS purchases, bits
    FROM counted WHERE bits <> 0;
"""
CELLS = """
    SELECT query_id, doc_id, position, count(*) AS impressions, sum(clicks)::BIGINT AS clicks,
        sum(carts)::BIGINT AS carts, sum(purchases)::BIGINT AS purchases
    FROM fates WHERE bits = 0 GROUP BY ALL ORDER BY ALL
"""
USERS = "SELECT query_id, doc_id, count(DISTINCT person) AS users FROM fates WHERE bits = 0 GROUP BY ALL ORDER BY ALL"
DROPS = """
    SELECT bits, sum(impressions)::BIGINT AS impressions, sum(clicks)::BIGINT AS clicks, sum(carts)::BIGINT AS carts,
        sum(purchases)::BIGINT AS purchases
    FROM (
        SELECT bits, 1 AS impressions, clicks, carts, purchases FROM fates
        UNION ALL BY NAME
        SELECT bits, 0 AS impressions, (kind = 'click')::INT AS clicks, (kind = 'cart')::INT AS carts,
            (kind = 'purchase')::INT AS purchases
        FROM acts WHERE bits <> 0
    ) WHERE bits <> 0 GROUP BY ALL ORDER BY ALL
"""


def apply_rules(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute `fates` of impressions and `acts` from the views `impressions` (with `draw`) and `interactions`."""
    agents = connection.execute("SELECT DISTINCT user_agent FROM impressions WHERE user_agent IS NOT NULL").fetchall()
    connection.execute("CREATE TEMP TABLE crawlers (agent VARCHAR)")
    listed = [(agent,) for (agent,) in agents if is_crawler(agent)]
    if listed:
        connection.executemany("INSERT INTO crawlers VALUES (?)", listed)
    bits = {name: 1 << place for place, name in enumerate(RULES)}
    for statements in (SUSPECTS, EVENTS, PAGES, PAIRS):
        connection.execute(statements.format(**bits))
