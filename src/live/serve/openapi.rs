//! OpenAPI 3.1 description of the service.

use serde_json::{Value, json};

/// Returns the OpenAPI document.
pub(super) fn document() -> Value {
    let text = || json!({ "type": "string" });
    let count = || json!({ "type": "integer", "minimum": 0 });
    let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let answers = |kind: &str, schema: Value| {
        json!({
            "200": { "description": "The answer", "content": { kind: { "schema": schema } } },
            // All errors have one format, so one entry describes every status but 200.
            "default": {
                "description": "The problem, if there is no answer",
                "content": { "application/problem+json": { "schema": reference("Problem") } },
            },
        })
    };
    let query = |name: &str, required: bool, about: &str, schema: Value| json!({ "name": name, "in": "query", "required": required, "description": about, "schema": schema });
    let get = |about: &str, parameters: Vec<Value>, kind: &str, schema: Value| json!({ "get": { "summary": about, "parameters": parameters, "responses": answers(kind, schema) } });
    let post = |summary: &str, bodies: &[&str], kind: &str| {
        let content: serde_json::Map<String, Value> =
            bodies.iter().map(|kind| (kind.to_string(), json!({ "schema": text() }))).collect();
        json!({ "post": {
            "summary": summary,
            "requestBody": { "required": true, "content": content },
            "responses": answers(kind, text()),
        } })
    };
    let object = |properties: &[(&str, Value)], optional_properties: &[(&str, Value)]| {
        let schema_properties: serde_json::Map<String, Value> =
            properties.iter().chain(optional_properties).map(|(name, of)| (name.to_string(), of.clone())).collect();
        let required: Vec<&str> = properties.iter().map(|one| one.0).collect();
        json!({ "type": "object", "properties": schema_properties, "required": required })
    };
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "webtwin live",
            "version": webtwin_base::build_info::version(),
            "description": "An index that grows with a crawl, and advises the crawler which copies to skip.",
        },
        // The key is optional: a server without configured keys accepts requests without one.
        "security": [{}, { "key": [] }],
        "paths": {
            "/v1/pages": post(
                "Adds pages from JSON lines or a WARC file; returns a line for each record and a line of counts, once \
                 all are on disk",
                &["application/x-ndjson", "application/warc"], "application/x-ndjson"),
            "/v1/pages.txt": post(
                "Advises on URLs, a line for each: fetch; skip, with a tab and the URL that was fetched if there is \
                 one; rewrite, a tab and the URL to fetch instead; reject", &["text/plain"], "text/plain"),
            "/v1/page": get("Returns advice on a URL", vec![query("url", true, "URL, canonical or not", text())],
                "application/json", reference("Page")),
            // This route also takes a header, which the `get` closure does not cover.
            "/v1/advice": { "get": {
                "summary":
                    "Lists advice, oldest first; with Accept: text/event-stream, as events with the sequence number \
                     as id",
                "parameters": [
                    query("since", false, "Sequence number after which advice is returned", count()),
                    query("wait", false, "Seconds to wait for advice, at most 30", json!({ "type": "number" })),
                    { "name": "Last-Event-ID", "in": "header", "required": false, "description": "Like `since`",
                      "schema": count() },
                ],
                "responses": answers("application/json", object(
                    &[("advice", json!({ "type": "array", "items": reference("Advice") })), ("last", count())], &[])),
            } },
            "/v1/run": get("Returns counts of the index and its files", vec![], "application/json", reference("Run")),
            "/health": get("Checks that the process answers", vec![], "text/plain", text()),
            "/ready": get("Checks that the index is open", vec![], "application/json",
                object(&[("ready", json!({ "type": "boolean" }))], &[])),
            "/metrics": get("Returns counters in the text format of Prometheus", vec![], "text/plain", text()),
            "/openapi.json": get("Returns this document", vec![], "application/json", json!({ "type": "object" })),
        },
        "components": {
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
            "schemas": {
                "Advice": object(
                    &[("sequence", count()),
                      ("kind", json!({ "enum": ["mirror", "alias", "url_rule", "trap", "placeholder"] })),
                      ("action", json!({ "enum": ["rewrite", "skip", "fetch"] })),
                      ("prefix", text()), ("matched", count()), ("differing", count()),
                      ("bound", json!({ "type": "number" })), ("pages", count())],
                    &[("of", text()), ("withdraws", count()), ("rule", json!({ "type": "object" }))]),
                "Verdict": object(&[("action", json!({ "enum": ["fetch", "skip", "rewrite"] })), ("why", text())], &[("url", text())]),
                "Page": object(
                    &[("url", text()), ("verdict", reference("Verdict")),
                      ("page", json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] }))], &[]),
                "Run": object(
                    &[("folder", text()), ("figures", json!({ "type": "object" })), ("files", json!({ "type": "object" })),
                      ("records", json!({ "type": "object" }))], &[]),
                "Problem": object(
                    &[("type", text()), ("title", text()), ("status", count()), ("code", text()), ("detail", text())], &[]),
            },
        },
    })
}
