//! Parses requests to `/purge` and `/explain`, and writes explanations as JSON. The module `access`
//! decides which clients may send these requests.

use foxy_proxy::cache::CacheKey;
use foxy_proxy::cache::purge::{Named, Scope, Strength, key_of};
use foxy_proxy::core::outcome::HitSource;
use foxy_proxy::core::rules::RulesInForce;
use foxy_proxy::explain::{Explanation, Shown};
use foxy_proxy::request::asker::Asker;
use foxy_proxy::server::purge_search::{FoundByPurge, PurgeMatches, PurgeName};
use serde_json::{Value, json};
use std::net::IpAddr;

const MAX_NAMES_PER_PURGE: usize = 4096;

/// Most names in a purge request that counts objects, because each stored response is compared with
/// each name.
pub const MAX_COUNTED_NAMES: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub struct PurgeRequest {
    pub names: Vec<PurgeName>,
    pub strength: Strength,
    /// Whether the answer counts the stored responses that the names mean.
    pub counts: bool,
    /// Whether the request asks foxy only to count responses, not to purge them.
    pub is_trial: bool,
}

impl PurgeRequest {
    /// Parses the query of the URL, or the JSON body if there is no query. `rules` may remove query
    /// parameters of a purged URL from its cache key. The error tells the user how to write the
    /// request.
    pub fn read(query: Option<&str>, body: &[u8], rules: &RulesInForce) -> Result<Self, String> {
        let pairs = match query {
            Some(query) => query_pairs(query)?,
            None => json_pairs(body)?,
        };
        let mut request =
            Self { names: Vec::new(), strength: Strength::Soft, counts: false, is_trial: false };
        for (name, value) in &pairs {
            let named = match &**name {
                "url" => Named::Url,
                "tag" => Named::Tag,
                "prefix" => Named::Prefix,
                "site" => Named::Site,
                "all" => {
                    if is_yes(name, value)? {
                        let text = "everything".into();
                        request.names.push(PurgeName { text, scopes: vec![Scope::All], url: None });
                    }
                    continue;
                }
                "count" => {
                    request.counts = is_yes(name, value)?;
                    continue;
                }
                "dry-run" => {
                    request.is_trial = is_yes(name, value)?;
                    continue;
                }
                "hard" => {
                    if is_yes(name, value)? {
                        request.strength = Strength::Hard;
                    }
                    continue;
                }
                other => {
                    return Err(format!(
                        "unknown name {other:?}; use url, tag, prefix, site, all, hard, count or \
                         dry-run"
                    ));
                }
            };
            let refused = |bad| format!("{name} {value:?}: {bad}");
            let url = key_of(value).filter(|_| named == Named::Url);
            let url = url.map(|key| CacheKey::new(rules.key(key)));
            let scopes = match &url {
                Some(key) => vec![Scope::url(key)],
                None => named.scopes(value).map_err(refused)?,
            };
            request.names.push(PurgeName { text: format!("{name} {value}"), scopes, url });
        }
        request.counts |= request.is_trial;
        match request.scopes().len() {
            count if request.counts && count > MAX_COUNTED_NAMES => Err(format!(
                "{count} names are too many to count; send at most {MAX_COUNTED_NAMES}"
            )),
            0 => {
                Err("the request names nothing to purge; give url, tag, prefix, site or all".into())
            }
            1..=MAX_NAMES_PER_PURGE => Ok(request),
            count => Err(format!("{count} names are too many; send at most {MAX_NAMES_PER_PURGE}")),
        }
    }

    /// Returns for each name in the request the purges (scopes of stored responses) for which it
    /// stands.
    pub fn scopes(&self) -> Vec<Scope> {
        self.names.iter().flat_map(|name| name.scopes.clone()).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// The number of the newest purge; foxy numbers all purges. `None` if foxy purged nothing,
    /// because the request only asked how many responses a purge would affect.
    pub number: Option<u64>,
    /// How many stored responses the names mean. `None` if the request did not ask for this.
    pub found: Option<FoundByPurge>,
    /// The nodes that purged. `None` if foxy belongs to no fleet.
    pub reach: Option<PurgeReach>,
}

/// The nodes of a fleet on which a purge holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeReach {
    AllNodes,
    /// Only the node that received the purge, because the fleet has no engine.
    ThisNode,
}

impl PurgeReach {
    pub const fn name(self) -> &'static str {
        match self {
            Self::AllNodes => "all-nodes",
            Self::ThisNode => "this-node",
        }
    }
}

impl Purged {
    /// Returns the result as JSON. `texts` are the names in the request, and `scopes` is the number
    /// of purges for which they stand.
    pub fn as_json(&self, texts: &[String], scopes: usize, strength: Strength) -> Value {
        let mut body = json!({
            "purged": if self.number.is_some() { scopes } else { 0 },
            "strength": strength.name(),
            "number": self.number,
        });
        if let Some(reach) = self.reach {
            body["reach"] = reach.name().into();
        }
        let Some(FoundByPurge { all, names }) = &self.found else { return body };
        let nothing =
            |matches: &PurgeMatches| matches.memory == 0 && matches.disk.unwrap_or(0) == 0;
        let unmatched = texts.iter().zip(names).filter(|(_, matches)| nothing(matches));
        let unmatched = unmatched.map(
            |(text, matches)| json!({ "name": text, "disk_searched": matches.disk.is_some() }),
        );
        body["objects"] = json!({
            "memory": all.memory,
            "disk": all.disk,
            "at_least": all.memory + all.disk.unwrap_or(0),
        });
        body["unmatched"] = unmatched.collect();
        body
    }
}

fn is_yes(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "" | "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{name} must be true or false, not {value:?}")),
    }
}

fn json_pairs(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    const RIGHT: &str =
        "write an object such as {\"url\": \"http://example.com/\", \"hard\": true}";
    let value = serde_json::from_slice(body)
        .map_err(|error| format!("the body is not JSON: {error}; {RIGHT}"))?;
    let Value::Object(fields) = value else {
        return Err(format!("the body is not a JSON object; {RIGHT}"));
    };
    let mut pairs = Vec::new();
    for (name, value) in fields {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Bool(truth) => truth.to_string(),
                _ => {
                    return Err(format!(
                        "the value of {name:?} must be text, true or false; {RIGHT}"
                    ));
                }
            };
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainRequest {
    pub method: String,
    pub url: String,
    /// The client and user from which the explained request would come.
    pub asker: Asker,
    /// Additional header fields of the explained request.
    pub fields: Vec<(String, String)>,
}

impl ExplainRequest {
    /// Parses a query with one `url` and any number of `field=Name: value`. The query may also have
    /// `method`, `from` (the client's address) and `user`. The error tells the user how to write
    /// the query.
    pub fn read(query: Option<&str>) -> Result<Self, String> {
        let (mut method, mut url) = ("GET".to_owned(), None);
        let mut asker = Asker::from(IpAddr::from([127, 0, 0, 1]));
        let mut fields = Vec::new();
        for (name, value) in query_pairs(query.unwrap_or(""))? {
            if value.contains(|c: char| c.is_ascii_control()) {
                return Err(format!("{name} {value:?} contains a control character"));
            }
            match &*name {
                "url" => url = Some(value),
                "method" => method = value,
                "from" => {
                    asker.client = value.parse().map_err(|_| {
                        format!("from {value:?} is not an address; write 192.0.2.1")
                    })?;
                }
                "user" => asker.user = Some(value.into()),
                "field" => fields.push(header_field(&value)?),
                other => {
                    return Err(format!(
                        "unknown name {other:?}; use url, method, from, user or field"
                    ));
                }
            }
        }
        let url = url.ok_or("the query has no url; write /explain?url=http://example.com/")?;
        Ok(Self { method, url, asker, fields })
    }

    pub fn as_json(&self, explanation: &Explanation) -> Value {
        let steps = explanation.steps.iter().map(|step| {
            let says = step.to_string();
            json!({ "rule": step.name(), "section": step.section(), "says": says })
        });
        json!({
            "method": self.method,
            "url": self.url,
            "stored": explanation.stored.as_ref().map(stored_json),
            "steps": steps.collect::<Vec<_>>(),
        })
    }
}

/// Parses a header line such as `Accept-Language: de`. Returns its name and value.
pub fn header_field(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').map(|(name, value)| (name.trim(), value.trim()));
    match parts {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err(format!(
            "{text:?} is not a header line; write a line such as `Accept-Language: de`"
        )),
    }
}

fn stored_json(shown: &Shown) -> Value {
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

/// Returns the pairs of name and decoded value in a query, in order.
pub fn query_pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    let parts = query.split('&').filter(|part| !part.is_empty());
    let pairs = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    pairs.map(|(name, value)| Ok((name.to_owned(), decode(value)?))).collect()
}

fn decode(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} has a % without two hexadecimal digits; write %25 for a %");
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next().unwrap_or("").as_bytes());
    for part in parts {
        let (digits, rest) = part.split_at_checked(2).ok_or_else(wrong)?;
        // `from_str_radix` also accepts a sign, such as `+1`, so the digits are checked.
        let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let byte =
            u8::from_str_radix(digits, 16).ok().filter(|_| is_hexadecimal).ok_or_else(wrong)?;
        bytes.push(byte);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not UTF-8"))
}

/// Percent-encodes a value for a query.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let encoded =
        |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: Option<&str>, body: &str, names: &[(Named, &str)], strength: Strength) {
        let scopes: Vec<Scope> =
            names.iter().flat_map(|(named, name)| named.scopes(name).expect("a name")).collect();
        let read = PurgeRequest::read(query, body.as_bytes(), &RulesInForce::default());
        let read = read.map(|request| (request.scopes(), request.strength, request.counts));
        assert_eq!(read, Ok((scopes, strength, false)), "{query:?} {body}");
    }

    #[test]
    fn a_query_and_a_body_mean_the_same_purge() {
        let x = [(Named::Url, "http://a.test/?x=1&y=%")];
        check(Some("url=http://a.test/?x%3d1%26y=%25"), "", &x, Strength::Soft);
        check(None, "{\"url\": \"http://a.test/?x=1&y=%\", \"hard\": false}", &x, Strength::Soft);
        let several = [(Named::Site, "c.test"), (Named::Tag, "a"), (Named::Tag, "b")];
        check(Some("site=c.test&tag=a&tag=b&hard"), "", &several, Strength::Hard);
        check(
            None,
            "{\"tag\": [\"a\", \"b\"], \"site\": \"c.test\", \"hard\": true}",
            &several,
            Strength::Hard,
        );
        let read = PurgeRequest::read(Some("all=1&dry-run"), b"", &RulesInForce::default());
        let all = read.expect("a request");
        assert_eq!((all.scopes(), all.counts, all.is_trial), (vec![Scope::All], true, true));
    }

    #[test]
    fn an_unusable_purge_request_names_the_mistake() {
        let cases = [
            (Some("x=1"), "", "unknown name \"x\""),
            (Some(""), "", "names nothing to purge"),
            (Some("all=0"), "", "names nothing to purge"),
            (Some("hard=maybe&all"), "", "hard must be true or false"),
            (Some("url=%zz"), "", "two hexadecimal digits"),
            (Some("url=%+1"), "", "two hexadecimal digits"),
            (Some("url=/x"), "", "url \"/x\": must begin with http://"),
            (None, "", "is not JSON"),
            (None, "[]", "not a JSON object"),
            (None, "{\"tag\": 7}", "must be text, true or false"),
        ];
        for (query, body, part) in cases {
            let said = PurgeRequest::read(query, body.as_bytes(), &RulesInForce::default());
            let said = said.expect_err("refused");
            assert!(said.contains(part), "{query:?} {body}: {said}");
        }
    }

    #[test]
    fn a_query_names_a_url_and_fields() {
        let asked = ExplainRequest::read(Some(
            "url=http://a.test/%3Fx&field=Accept:%20*/*&field=Range:bytes%3D0-&method=PUT\
             &from=::1&user=ann",
        ));
        let fields = [("Accept", "*/*"), ("Range", "bytes=0-")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let (method, url) = ("PUT".into(), "http://a.test/?x".into());
        let client = "::1".parse().expect("an address");
        let asker = Asker { client, user: Some("ann".into()) };
        assert_eq!(asked, Ok(ExplainRequest { method, url, asker, fields }));
    }

    #[test]
    fn an_unusable_explain_request_names_the_mistake() {
        for (query, part) in [
            (None, "no url"),
            (Some("url=http://a.test/&field=x"), "not a header line"),
            (Some("url=http://a.test/&field=a:b%0d%0ac:d"), "control character"),
            (Some("link=x"), "use url, method, from, user or field"),
        ] {
            let said = ExplainRequest::read(query).expect_err("refused");
            assert!(said.contains(part), "{query:?}: {said}");
        }
    }

    #[test]
    fn decoding_reverses_encoding() {
        for text in ["http://a.test/x?y=1&z=%20#", "é, ü", ""] {
            assert_eq!(decode(&encode(text)).as_deref(), Ok(text));
        }
    }
}
