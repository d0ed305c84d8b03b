//! OpenAPI 3.1 description of the service. Clients are generated from it, and tests validate every
//! answer against it.
//!
//! It is a single literal, because annotations for a generator would be spread over all handlers
//! and answers.

use serde_json::{Value, json};

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn or_null(schema: Value) -> Value {
    json!({ "anyOf": [schema, { "type": "null" }] })
}

pub(super) fn hex() -> Value {
    json!({ "type": "string", "pattern": "^[0-9a-f]{16}$" })
}

pub(super) fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

pub(super) fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}

pub(super) fn named(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Returns the schema of an object whose properties are all required.
pub(super) fn object(properties: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = properties.iter().map(|one| one.0).collect();
    let properties: serde_json::Map<String, Value> =
        properties.iter().map(|(name, of)| (name.to_string(), of.clone())).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

pub(super) fn query(name: &str, required: bool, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "query", "required": required, "description": description, "schema": schema })
}

fn path(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": hex() })
}

fn answers(kind: &str, schema: Value) -> Value {
    json!({ "200": { "description": "The answer", "content": { kind: { "schema": schema } } }, "default": named_problem() })
}

fn named_problem() -> Value {
    json!({ "description": "The problem, if there is no answer", "content": { "application/problem+json": { "schema": named("Problem") } } })
}

pub(super) fn get(description: &str, parameters: Vec<Value>, kind: &str, schema: Value) -> Value {
    json!({ "get": { "summary": description, "parameters": parameters, "responses": answers(kind, schema) } })
}

fn post(description: &str, parameters: Vec<Value>, bodies: &[(&str, Value)], kind: &str, schema: Value) -> Value {
    let content: serde_json::Map<String, Value> =
        bodies.iter().map(|(kind, schema)| (kind.to_string(), json!({ "schema": schema }))).collect();
    let mut operation = json!({ "summary": description, "parameters": parameters, "responses": answers(kind, schema) });
    if !content.is_empty() {
        operation["requestBody"] = json!({ "required": true, "content": content });
    }
    json!({ "post": operation })
}

pub(super) const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Returns the document.
pub(super) fn document() -> Value {
    let first_member = || query("from", false, "Number of members to skip", count());
    let limit = || query("limit", false, "Maximum number of members", count());
    let k = || query("k", false, "Number of bits that may differ", count());
    // The values that `Flag` accepts in a query string.
    let flag = |name: &str, about: &str| query(name, false, about, json!({ "enum": ["1", "0", "true", "false", ""] }));
    // Both lists have these parameters.
    let listing = || {
        let words = "Words that must all occur in titles and URLs; without them, everything is listed";
        vec![
            query("q", false, words, text()),
            query("from", false, "Position of the first entry: `next` of the previous answer", count()),
            limit(),
        ]
    };
    let url = |required| query("url", required, "URL, canonical or not", text());
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "webtwin", "version": webtwin_base::build_info::version(), "description": "Looks up URLs, texts and fingerprints in an index of a finished run." },
        "security": [{}, { "key": [] }],
        "paths": {
            "/v1/page": get("Looks up a URL", vec![url(false), query("id", false, "Doc id, instead of a URL", hex())], JSON, named("Answer")),
            "/v1/pages": post("Looks up at most 10,000 URLs or doc ids", vec![], &[(JSON, json!({
                "type": "object",
                "properties": { "urls": list(text()), "ids": list(hex()), "fields": list(text()) },
            }))], JSON, object(&[("run", text()), ("answers", list(named("Answer")))])),
            "/v1/pages.txt": post(
                "Looks up lines of URLs; returns for each fetch, skip, a tab and the URL that stays, unknown or reject",
                vec![], &[(TEXT, text())], TEXT, text()),
            "/v1/check": post("Finds pages with the same text or a similar one", vec![
                url(false), query("charset", false, "Charset, if the media type does not name it", text()),
            ], &[("text/html", text()), (TEXT, text())], JSON, named("Check")),
            "/v1/near/{fingerprint}": get("Finds simhashes within k bits", vec![path("fingerprint"), k(), limit()], JSON, list(named("Near"))),
            "/v1/near": post("Finds simhashes within k bits of at most 1,000 fingerprints", vec![], &[(JSON, json!({
                "type": "object",
                "properties": { "fingerprints": list(hex()), "k": count(), "limit": count() },
                "required": ["fingerprints"],
            }))], JSON, list(list(named("Near")))),
            "/v1/sets": get("Lists trivial clusters, the largest first", listing(), JSON, list_schema("ListedSet")),
            "/v1/collections": get("Lists originals with their mirrors, those with the most pages in mirrors first", listing(), JSON,
                list_schema("ListedOriginal")),
            "/v1/set/{id}": get("Returns the trivial cluster of a page", vec![path("id"), first_member(), limit()], JSON, named("Set")),
            "/v1/collection/{id}": get("Returns a collection", vec![path("id"), first_member(), limit()], JSON, named("Collection")),
            "/v1/explain": get("Explains why two pages are in one trivial cluster or not", vec![
                query("a", true, "URL of a page", text()), query("b", true, "URL of another page", text()),
            ], JSON, json!({ "type": "object", "required": ["together", "reasons", "chain", "overlap", "hamming"] })),
            "/v1/alternates": get("Lists the known copies of a page", vec![
                url(true), flag("newest", "List the newest copies first"), flag("elsewhere", "Consider copies on other hosts only"), limit(),
            ], JSON, object(&[("url", text()), ("alternates", list(named("Alternate")))])),
            "/v1/redirect": { "get": {
                "summary": "Redirects to the best copy of a page",
                "parameters": [url(true), flag("newest", "Choose the newest copy"), flag("elsewhere", "Consider copies on other hosts only")],
                "responses": {
                    "302": { "description": "Location is the URL of the copy", "headers": { "Location": { "schema": text() } } },
                    "default": named_problem(),
                },
            } },
            "/v1/run": get("Describes the served index", vec![], JSON, named("Run")),
            "/v1/reload": post("Reloads the index", vec![], &[], JSON, object(&[("run", text())])),
            "/openapi.json": get("Returns this document", vec![], JSON, json!({ "type": "object" })),
            "/health": get("Checks that the process answers", vec![], TEXT, text()),
            "/ready": get("Checks that an index is served; `stale` is true if the last reload failed", vec![], JSON,
                object(&[("ready", json!({ "type": "boolean" })), ("stale", json!({ "type": "boolean" }))])),
            "/metrics": get("Returns counters in the text format of Prometheus", vec![], TEXT, text()),
        },
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas(),
        },
    });
    #[cfg(feature = "search")]
    let document = super::search::described(document);
    document
}

/// Returns the schema of a part of a list.
fn list_schema(of: &str) -> Value {
    object(&[("all", count()), ("matches", or_null(count())), ("shown", list(named(of))), ("next", or_null(count()))])
}

fn schemas() -> Value {
    let boolean = || json!({ "type": "boolean" });
    let action = json!({ "enum": ["fetch", "skip", "unknown", "reject"] });
    let page = || object(&[("id", hex()), ("url", text())]);
    let collection = object(&[("id", hex()), ("root", text()), ("size", count()), ("cardinality", count())]);
    let mirror = [("id", hex()), ("root", named("Page")), ("title", text()), ("size", count()), ("keep", boolean())];
    // The answer flattens a collection's own data, so its schema repeats the properties of a
    // mirror.
    let mut fields = mirror.to_vec();
    fields.extend([
        ("similar_cluster", hex()),
        ("cardinality", count()),
        ("mirrors", list(object(&mirror))),
        ("from", count()),
        ("members", list(named("Member"))),
    ]);
    let measures = object(&[("overlap", text()), ("hamming", text()), ("minhash", text())]);
    json!({
        "Page": page(),
        "ListedSet": object(&[
            ("id", hex()), ("pages", count()), ("hosts", count()), ("page", named("Page")), ("title", text()),
        ]),
        "ListedOriginal": object(&[
            ("id", hex()), ("root", named("Page")), ("title", text()), ("pages", count()), ("copies", count()), ("surplus", count()),
            ("sizes", list(count())),
        ]),
        "Unknown": object(&[
            ("reason", json!({ "enum": ["rejected", "not_crawled", "outside_run"] })), ("host_pages", or_null(count())),
            ("rejected", or_null(text())), ("advice", text()),
        ]),
        // Fields of a look-up: `null` means that there is no value, so all are required.
        "Answer": object(&[
            ("url", or_null(text())), ("canonical", or_null(text())), ("id", or_null(text())), ("known", boolean()),
            ("action", action.clone()), ("why", or_null(text())), ("role", or_null(text())), ("keep", or_null(named("Page"))),
            ("cluster", or_null(hex())), ("collection", or_null(collection)), ("prefix", or_null(text())),
            ("rewritten", or_null(text())), ("rule", or_null(named("Rule"))),
            ("title", or_null(text())), ("unknown", or_null(named("Unknown"))),
        ]),
        "Rule": object(&["scope", "kind", "pattern", "replacement"].map(|name| (name, text()))),
        "Check": object(&[
            ("exact", or_null(named("Page"))), ("near", list(named("NearPage"))), ("action", action), ("why", or_null(text())),
            ("keep", or_null(named("Page"))), ("text_bytes", count()), ("fingerprint", or_null(hex())), ("chunks", count()),
            ("counting", or_null(count())), ("measures", measures),
        ]),
        "NearPage": object(&[
            ("id", hex()), ("url", text()), ("measure", json!({ "enum": ["overlap", "hamming"] })), ("shared", or_null(count())),
            ("distance", or_null(count())), ("resemblance", or_null(json!({ "type": "number" }))), ("keep", or_null(named("Page"))),
        ]),
        "Near": object(&[("fingerprint", hex()), ("distance", count()), ("ids", list(hex()))]),
        "Member": object(&[
            ("id", hex()), ("url", text()), ("title", text()), ("role", or_null(text())), ("why", or_null(text())), ("keep", or_null(hex())),
            ("fetched", or_null(count())), ("text", or_null(hex())), ("simhash", or_null(hex())),
        ]),
        "Set": object(&[("id", hex()), ("pages", count()), ("from", count()), ("members", list(named("Member")))]),
        "Collection": object(&fields),
        "Alternate": object(&[
            ("id", hex()), ("url", text()), ("title", text()), ("fetched", or_null(count())), ("same_text", boolean()), ("bits", or_null(count())),
            ("stays", boolean()), ("elsewhere", boolean()),
        ]),
        "Run": object(&[
            ("run", text()), ("digest", text()), ("made_from", text()), ("in_force", or_null(text())), ("index", text()),
            ("pages", count()), ("clusters", count()), ("collections", count()), ("prefixes", count()), ("bytes", count()), ("chunks", boolean()),
            ("simhash_k", or_null(count())), ("texts", or_null(count())), ("recipes", json!({ "type": "object" })),
        ]),
        "Problem": object(&[
            ("type", text()), ("title", text()), ("status", count()), ("code", text()), ("detail", text()),
        ]),
    })
}
