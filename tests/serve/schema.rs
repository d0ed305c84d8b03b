//! The part of JSON Schema that openapi.json uses.

use serde_json::Value;

/// Returns the first violation of a schema of a document by a value, or `None`.
pub(crate) fn wrong(document: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let fault = |what: String| Some(format!("{at}: {what} in {value}"));
    let object = schema.as_object().expect("a schema is an object");
    for (keyword, of) in object {
        let violation = match keyword.as_str() {
            "$ref" => {
                let pointer = of.as_str().unwrap().strip_prefix('#').unwrap();
                wrong(document, document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer}")), value, at)
            }
            "anyOf" => {
                let faults: Vec<_> = of.as_array().unwrap().iter().map(|one| wrong(document, one, value, at)).collect();
                if faults.iter().any(Option::is_none) { None } else { fault(format!("none of {faults:?}")) }
            }
            "enum" => (!of.as_array().unwrap().contains(value)).then(|| format!("{at}: {value} is none of {of}")),
            "type" => {
                let is = match of.as_str().unwrap() {
                    "object" => value.is_object(),
                    "array" => value.is_array(),
                    "string" => value.is_string(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "number" => value.is_number(),
                    "boolean" => value.is_boolean(),
                    "null" => value.is_null(),
                    other => panic!("unknown type {other}"),
                };
                if is { None } else { fault(format!("no {of}")) }
            }
            "minimum" => (value.as_f64() < of.as_f64()).then(|| format!("{at}: {value} is below {of}")),
            // The only pattern that is used.
            "pattern" => {
                assert_eq!(of, "^[0-9a-f]{16}$");
                let is = value
                    .as_str()
                    .is_some_and(|text| text.len() == 16 && text.bytes().all(|b| b"0123456789abcdef".contains(&b)));
                if is { None } else { fault("no id".into()) }
            }
            "items" => value.as_array().and_then(|all| {
                all.iter().enumerate().find_map(|(number, one)| wrong(document, of, one, &format!("{at}[{number}]")))
            }),
            "required" => of
                .as_array()
                .unwrap()
                .iter()
                .find_map(|name| value.get(name.as_str().unwrap()).is_none().then(|| format!("{at}: lacks {name}"))),
            "properties" => of
                .as_object()
                .unwrap()
                .iter()
                .find_map(|(name, of)| wrong(document, of, value.get(name)?, &format!("{at}.{name}"))),
            "additionalProperties" => {
                assert_eq!(of, false);
                let known = object["properties"].as_object().unwrap();
                value
                    .as_object()
                    .and_then(|all| all.keys().find(|name| !known.contains_key(*name)))
                    .map(|name| format!("{at}: {name} is not in the document"))
            }
            other => panic!("unknown keyword {other}"),
        };
        if violation.is_some() {
            return violation;
        }
    }
    None
}
