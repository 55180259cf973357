-- The contents of a corpus: published documents, passages and names, and staged changes.
CREATE TABLE documents (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
    content_hash TEXT NOT NULL, pages INTEGER, aliases TEXT NOT NULL);
CREATE TABLE passages (
    id TEXT PRIMARY KEY, document TEXT NOT NULL, record TEXT NOT NULL, digest BLOB NOT NULL, vector BLOB NOT NULL);
CREATE INDEX passages_of_document ON passages (document);
CREATE TABLE names (key TEXT, passage TEXT, doc TEXT NOT NULL, whole INTEGER NOT NULL, PRIMARY KEY (key, passage))
    WITHOUT ROWID;
CREATE INDEX names_of_passage ON names (passage);
CREATE TABLE incoming_documents (
    id TEXT PRIMARY KEY, source TEXT NOT NULL, title TEXT NOT NULL, kind TEXT NOT NULL,
    content_hash TEXT NOT NULL, pages INTEGER, aliases TEXT NOT NULL,
    removal INTEGER NOT NULL, publishing INTEGER NOT NULL, stale INTEGER NOT NULL);
CREATE TABLE incoming_passages (id TEXT PRIMARY KEY, document TEXT NOT NULL, record TEXT NOT NULL, vector BLOB);
CREATE INDEX incoming_of_document ON incoming_passages (document);
