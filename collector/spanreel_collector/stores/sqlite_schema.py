"""The tables of the SQLite store, as migrations: each is run once, in order, in a transaction of its own.

A released migration is never changed; what is to be different is a further one.
"""

from __future__ import annotations

from typing import Final

from spanreel_collector.stores.migrations import SEVERAL_USERS, SMALL_TRACES

# Rows with large values are not WITHOUT ROWID: those would stand in the tree itself. Keys of items are random, so that
# each further index on them would cost a page a row.
_FIRST: Final = """
CREATE TABLE trace (
    tenant TEXT NOT NULL, trace BLOB NOT NULL,
    mark INTEGER NOT NULL, done INTEGER NOT NULL,
    first INTEGER NOT NULL, last INTEGER NOT NULL,
    claimed INTEGER NOT NULL, items INTEGER NOT NULL, bytes INTEGER NOT NULL,
    alone INTEGER NOT NULL, reader TEXT,
    PRIMARY KEY (tenant, trace)
) WITHOUT ROWID;
CREATE INDEX trace_pending ON trace (last) WHERE done < mark;
CREATE INDEX trace_alone ON trace (last) WHERE alone = 1;
CREATE INDEX trace_reader ON trace (reader) WHERE reader IS NOT NULL;

CREATE TABLE item (
    tenant TEXT NOT NULL, trace BLOB NOT NULL, item BLOB NOT NULL,
    PRIMARY KEY (tenant, trace, item)
) WITHOUT ROWID;

CREATE TABLE segment (
    tenant TEXT NOT NULL, trace BLOB NOT NULL, mark INTEGER NOT NULL,
    signal TEXT NOT NULL, size INTEGER NOT NULL, items BLOB NOT NULL, body BLOB NOT NULL,
    UNIQUE (tenant, trace, mark)
);

CREATE TABLE erased (
    tenant TEXT NOT NULL, trace BLOB NOT NULL, at INTEGER NOT NULL,
    PRIMARY KEY (tenant, trace)
) WITHOUT ROWID;

CREATE TABLE session (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL, id TEXT NOT NULL,
    revision INTEGER NOT NULL, reader TEXT NOT NULL, summary BLOB NOT NULL, arrived INTEGER NOT NULL,
    key TEXT NOT NULL, origin TEXT NOT NULL, status TEXT NOT NULL,
    user_id TEXT, baseline TEXT, eligible INTEGER NOT NULL,
    by_started INTEGER NOT NULL, by_updated INTEGER NOT NULL, by_duration INTEGER NOT NULL,
    by_tokens INTEGER NOT NULL, by_cost REAL NOT NULL,
    UNIQUE (tenant, id)
);
CREATE INDEX session_started ON session (tenant, by_started, id);
CREATE INDEX session_updated ON session (tenant, by_updated, id);
CREATE INDEX session_duration ON session (tenant, by_duration, id);
CREATE INDEX session_tokens ON session (tenant, by_tokens, id);
CREATE INDEX session_cost ON session (tenant, by_cost, id);
CREATE INDEX session_of_user ON session (tenant, user_id, by_started, id) WHERE user_id IS NOT NULL;
CREATE INDEX session_key ON session (tenant, key);
CREATE INDEX session_baseline ON session (tenant, baseline, by_started, id) WHERE baseline IS NOT NULL;
CREATE INDEX session_arrived ON session (arrived);

CREATE TABLE facet (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL,
    session INTEGER NOT NULL REFERENCES session (number),
    PRIMARY KEY (tenant, kind, value, session)
) WITHOUT ROWID;
CREATE INDEX facet_session ON facet (session);

CREATE TABLE facet_count (
    tenant TEXT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, sessions INTEGER NOT NULL,
    PRIMARY KEY (tenant, kind, value)
) WITHOUT ROWID;

CREATE TABLE revision (
    tenant TEXT NOT NULL, session TEXT NOT NULL, revision INTEGER NOT NULL,
    at INTEGER NOT NULL, reader TEXT NOT NULL, document BLOB NOT NULL,
    UNIQUE (tenant, session, revision)
);

CREATE TABLE session_trace (
    tenant TEXT NOT NULL, session TEXT NOT NULL, trace BLOB NOT NULL,
    PRIMARY KEY (tenant, session, trace)
) WITHOUT ROWID;
CREATE INDEX session_trace_trace ON session_trace (tenant, trace);

CREATE TABLE name (
    tenant TEXT NOT NULL, name TEXT NOT NULL, trace BLOB NOT NULL,
    PRIMARY KEY (tenant, name, trace)
) WITHOUT ROWID;
CREATE INDEX name_trace ON name (tenant, trace);

CREATE TABLE report (
    tenant TEXT NOT NULL, id TEXT NOT NULL, session TEXT NOT NULL,
    at INTEGER NOT NULL, verdict TEXT NOT NULL, document BLOB NOT NULL,
    UNIQUE (tenant, id)
);
CREATE INDEX report_session ON report (tenant, session, at);

CREATE TABLE refusal (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL, at INTEGER NOT NULL, place TEXT NOT NULL, reason TEXT NOT NULL
);
CREATE INDEX refusal_tenant ON refusal (tenant, number);

CREATE TABLE probe (number INTEGER PRIMARY KEY, at INTEGER NOT NULL);

-- What is searched: an index that stores no text. To be removed from it a text has to be named: it is in session_words.
CREATE VIRTUAL TABLE word USING fts5 (words, content='', columnsize=0, detail=none, prefix='1 2 3', tokenize='ascii');
CREATE TABLE session_words (
    session INTEGER PRIMARY KEY REFERENCES session (number), words BLOB NOT NULL
);
"""

MIGRATIONS: Final = (_FIRST, SEVERAL_USERS, SMALL_TRACES)
"""Migration ``n`` stands at place ``n - 1``."""
