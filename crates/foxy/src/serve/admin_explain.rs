//! `GET /explain`: what is asked for, and the explanation as JSON.

use super::query;
use foxy_proxy::core::hit_source::HitSource;
use foxy_proxy::explain::{Explanation, Shown};
use serde_json::{Value, json};

/// A request that is to be explained.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its URL.
    pub url: String,
    /// Its further header lines.
    pub fields: Vec<(String, String)>,
}

/// Reads a query: one `url`, any number of `field=Name: value`. A refusal says what would be right.
pub fn read(query: Option<&str>) -> Result<Asked, String> {
    let mut url = None;
    let mut fields = Vec::new();
    for (name, value) in query::pairs(query.unwrap_or(""))? {
        if value.contains(|c: char| c.is_ascii_control()) {
            return Err(format!("{name} {value:?} has a control character"));
        }
        match &*name {
            "url" => url = Some(value),
            "field" => fields.push(field(&value)?),
            other => return Err(format!("{other:?} is neither url nor field")),
        }
    }
    let url = url.ok_or("no URL is named; write /explain?url=http://example.com/")?;
    Ok(Asked { url, fields })
}

/// A header line as people write it.
pub fn field(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match parts {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err(format!("{text:?} is no header line; write one such as `Accept-Language: de`")),
    }
}

/// The explanation of a request to that URL.
pub fn as_json(url: &str, explanation: &Explanation) -> Value {
    let steps = explanation.steps.iter().map(
        |step| json!({ "rule": step.name(), "section": step.section(), "says": step.to_string() }),
    );
    json!({
        "url": url,
        "stored": explanation.stored.as_ref().map(stored),
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn stored(shown: &Shown) -> Value {
    let head = String::from_utf8_lossy(&shown.head);
    json!({
        "where": if shown.source == HitSource::Memory { "memory" } else { "store" },
        "head": head.lines().collect::<Vec<_>>(),
        "received": shown.received.seconds(),
        "age": shown.age,
        "lifetime": shown.lifetime,
        "length": shown.length,
        "begun_after_purge": shown.begun.moment,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_names_a_url_and_fields() {
        let asked = read(Some("url=http://a.test/%3Fx&field=Accept:%20*/*&field=Range:bytes%3D0-"));
        let fields = [("Accept", "*/*"), ("Range", "bytes=0-")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(asked, Ok(Asked { url: "http://a.test/?x".into(), fields }));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (query, part) in [
            (None, "no URL"),
            (Some("url=http://a.test/&field=x"), "no header line"),
            (Some("url=http://a.test/&field=a:b%0d%0ac:d"), "control character"),
            (Some("link=x"), "neither url nor field"),
        ] {
            let said = read(query).expect_err("refused");
            assert!(said.contains(part), "{query:?}: {said}");
        }
    }
}
