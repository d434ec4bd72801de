//! What `POST /purge` asks for, from its query or its JSON body. Who may ask is decided elsewhere.

use super::query;
use foxy_proxy::cache::purge::{Named, Scope, Strength};
use serde_json::Value;

/// Names in one request.
const AT_MOST: usize = 4096;

/// What is to be purged.
#[derive(Debug, PartialEq, Eq)]
pub struct PurgeTarget {
    /// Which responses.
    pub scopes: Vec<Scope>,
    /// How.
    pub strength: Strength,
}

/// Reads a request: the query if there is one, else the body. A refusal says what would be right.
pub fn read(query: Option<&str>, body: &[u8]) -> Result<PurgeTarget, String> {
    let pairs = match query {
        Some(query) => query::pairs(query)?,
        None => from_json(body)?,
    };
    let mut wanted = PurgeTarget { scopes: Vec::new(), strength: Strength::Soft };
    for (name, value) in &pairs {
        let named = match &**name {
            "url" => Named::Url,
            "tag" => Named::Tag,
            "prefix" => Named::Prefix,
            "site" => Named::Site,
            "all" if is_yes(name, value)? => {
                wanted.scopes.push(Scope::All);
                continue;
            }
            "hard" if is_yes(name, value)? => {
                wanted.strength = Strength::Hard;
                continue;
            }
            "all" | "hard" => continue,
            other => {
                return Err(format!(
                    "{other:?} is not one of url, tag, prefix, site, all and hard"
                ));
            }
        };
        wanted
            .scopes
            .extend(named.scopes(value).map_err(|bad| format!("{name} {value:?}: {bad}"))?);
    }
    match wanted.scopes.len() {
        0 => Err("nothing to purge is named; name a url, tag, prefix or site, or all".into()),
        1..=AT_MOST => Ok(wanted),
        many => Err(format!("{many} names are too many; at most {AT_MOST} at a time")),
    }
}

fn is_yes(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "" | "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(format!("{name} is true or false, not {value:?}")),
    }
}

fn from_json(body: &[u8]) -> Result<Vec<(String, String)>, String> {
    const RIGHT: &str =
        "write an object such as {\"url\": \"http://example.com/\", \"hard\": true}";
    let value =
        serde_json::from_slice(body).map_err(|error| format!("not JSON: {error}; {RIGHT}"))?;
    let Value::Object(fields) = value else { return Err(format!("not an object; {RIGHT}")) };
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
                _ => return Err(format!("{name:?} is neither text nor true or false; {RIGHT}")),
            };
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: Option<&str>, body: &str, names: &[(Named, &str)], strength: Strength) {
        let scopes =
            names.iter().flat_map(|(named, name)| named.scopes(name).expect("a name")).collect();
        assert_eq!(
            read(query, body.as_bytes()),
            Ok(PurgeTarget { scopes, strength }),
            "{query:?} {body}"
        );
    }

    #[test]
    fn a_query_and_a_body_say_the_same() {
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
        let all = PurgeTarget { scopes: vec![Scope::All], strength: Strength::Soft };
        assert_eq!(read(Some("all=1"), b""), Ok(all));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let cases = [
            (Some("x=1"), "", "\"x\" is not one of"),
            (Some(""), "", "nothing to purge is named"),
            (Some("all=0"), "", "nothing to purge is named"),
            (Some("hard=maybe&all"), "", "hard is true or false"),
            (Some("url=%zz"), "", "two hexadecimal digits"),
            (Some("url=%+1"), "", "two hexadecimal digits"),
            (Some("url=/x"), "", "url \"/x\": it must begin with http://"),
            (None, "", "not JSON"),
            (None, "[]", "not an object"),
            (None, "{\"tag\": 7}", "neither text nor"),
        ];
        for (query, body, part) in cases {
            let said = read(query, body.as_bytes()).expect_err("refused");
            assert!(said.contains(part), "{query:?} {body}: {said}");
        }
    }
}
