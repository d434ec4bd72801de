//! Redirects (RFC 9110 §15.4): an answer that names another URL, which a template makes from the
//! URL of the request.

use super::path::{has_group, split_query, whole_path};
use super::template::{TemplatePart, parts};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use regex::bytes::{Captures, Regex};

/// Bytes that a `Location` field may not have. Bytes that are no ASCII are encoded too.
const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'\\');

/// The statuses of redirects to a single URL.
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

/// A redirect of clients to another URL.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// Status of the answer: 301, 302, 303, 307 or 308.
    status: u16,
    /// Expression that must match the whole path, or `None` for every path.
    from: Option<Regex>,
    /// The template of the new URL, as written.
    to: String,
    pieces: Vec<Piece>,
}

/// A part of the template of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// `$host`: the host of the request, without the port.
    Host,
    /// `$request_uri`: path and query of the request.
    RequestUri,
    /// `$1` or `${name}`: the text of a group of `from`.
    Group(String),
}

impl Redirect {
    /// Creates a redirect. `from` must match the whole path. In `to`, `$host` is the host of the
    /// request, `$request_uri` its path and query, and `$1` or `${name}` a group of `from`.
    ///
    /// # Errors
    /// A sentence that says what is wrong with a value.
    pub fn new(status: u16, from: Option<&str>, to: &str) -> Result<Self, String> {
        if !STATUSES.contains(&status) {
            return Err(format!("{status} is no status of a redirect; write 301, 302 or 308"));
        }
        let from = from.map(whole_path).transpose()?;
        let pieces = pieces(to);
        let is_group = |name: &str| from.as_ref().is_some_and(|regex| has_group(regex, name));
        let mut groups = pieces.iter().filter_map(|piece| match piece {
            Piece::Group(name) => Some(name),
            _ => None,
        });
        if let Some(name) = groups.find(|name| !is_group(name)) {
            return Err(format!(
                "`{to}` names `${name}`, but `from` has no such group; write $host, $request_uri \
                 or a group"
            ));
        }
        check_target(to, &pieces)?;
        Ok(Self { status, from, to: to.to_owned(), pieces })
    }

    /// Returns whether the new URL has the host of the request.
    pub fn needs_host(&self) -> bool {
        self.pieces.contains(&Piece::Host)
    }

    /// Returns the status of the answer.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Returns the new URL for a request. Returns `None` if `from` does not match the path. With
    /// `from`, the new URL keeps the query of the request.
    pub fn location(&self, host: &str, path_and_query: &[u8]) -> Option<Vec<u8>> {
        let (path, query) = split_query(path_and_query);
        let groups = match &self.from {
            Some(regex) => Some(regex.captures(path)?),
            None => None,
        };
        let mut url = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => url.extend_from_slice(text.as_bytes()),
                Piece::Host => url.extend_from_slice(host.as_bytes()),
                Piece::RequestUri => add_encoded(&mut url, path_and_query),
                Piece::Group(name) => add_encoded(&mut url, group(groups.as_ref(), name)),
            }
        }
        let keeps_query = self.from.is_some() && !self.pieces.contains(&Piece::RequestUri);
        if let [b'?', rest @ ..] = query
            && keeps_query
        {
            url.push(if url.contains(&b'?') { b'&' } else { b'?' });
            add_encoded(&mut url, rest);
        }
        Some(url)
    }
}

fn add_encoded(url: &mut Vec<u8>, text: &[u8]) {
    percent_encode(text, ENCODED).for_each(|part| url.extend_from_slice(part.as_bytes()));
}

fn group<'t>(groups: Option<&Captures<'t>>, name: &str) -> &'t [u8] {
    let found = groups.and_then(|groups| match name.parse::<usize>() {
        Ok(number) => groups.get(number),
        Err(_) => groups.name(name),
    });
    found.map_or(&[], |found| found.as_bytes())
}

/// Reads a template.
fn pieces(to: &str) -> Vec<Piece> {
    let piece = |part| match part {
        TemplatePart::Text(text) => Piece::Text(text.to_owned()),
        TemplatePart::Variable("host") => Piece::Host,
        TemplatePart::Variable("request_uri") => Piece::RequestUri,
        TemplatePart::Variable(name) => Piece::Group(name.to_owned()),
    };
    parts(to).into_iter().map(piece).collect()
}

/// Checks that the template gives a URL whose host no client can choose by the path: after
/// `https://example.org`, the client's text `.evil.test` would name another host.
fn check_target(to: &str, pieces: &[Piece]) -> Result<(), String> {
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if !is_plain(to) {
        return Err(format!("`{to}` has a space, a backslash or another odd character"));
    }
    if to.contains('#') {
        return Err(format!("`{to}` has a fragment; leave out #"));
    }
    let wrong = || format!("`{to}` is no URL; begin with https://HOST/, https://$host/ or /PATH");
    let Some(Piece::Text(first)) = pieces.first() else { return Err(wrong()) };
    let scheme = ["https://", "http://"].iter().find_map(|scheme| first.strip_prefix(scheme));
    let Some(authority) = scheme else {
        let is_path = first.starts_with('/') && !first.starts_with("//");
        // A text from the client behind a lone slash could begin with another slash.
        return if is_path && (first.len() > 1 || pieces.len() == 1) {
            Ok(())
        } else {
            Err(wrong())
        };
    };
    let mut names_host = false;
    let rest = std::iter::once(Piece::Text(authority.to_owned()));
    for piece in rest.chain(pieces[1..].iter().cloned()) {
        match piece {
            Piece::Text(text) => {
                let end = text.find(['/', '?']);
                names_host |= end != Some(0) && !text.is_empty();
                if text[..end.unwrap_or(text.len())].contains('@') {
                    return Err(wrong());
                }
                if end.is_some() {
                    return if names_host { Ok(()) } else { Err(wrong()) };
                }
            }
            Piece::Host => names_host = true,
            Piece::RequestUri if names_host => return Ok(()),
            Piece::RequestUri | Piece::Group(_) => return Err(wrong()),
        }
    }
    if names_host { Ok(()) } else { Err(wrong()) }
}

impl PartialEq for Redirect {
    fn eq(&self, other: &Self) -> bool {
        let from = |it: &Self| it.from.as_ref().map(|regex| regex.as_str().to_owned());
        self.status == other.status && self.to == other.to && from(self) == from(other)
    }
}

impl Eq for Redirect {}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(from: Option<&str>, to: &str, host: &str, path: &str) -> Option<String> {
        let redirect = Redirect::new(301, from, to).expect("sound");
        let url = redirect.location(host, path.as_bytes())?;
        Some(String::from_utf8(url).expect("ASCII"))
    }

    #[test]
    fn a_template_gets_the_parts_of_the_request() {
        let cases: [(Option<&str>, &str, &str, Option<&str>); 9] = [
            (None, "https://$host$request_uri", "/a?b=1", Some("https://h.test/a?b=1")),
            (None, "https://new.test/", "/a?b=1", Some("https://new.test/")),
            (None, "https://$host:8443/x", "/a", Some("https://h.test:8443/x")),
            (None, "/maintenance", "/a", Some("/maintenance")),
            (Some("/old/(.*)"), "/new/$1", "/old/x?q=1", Some("/new/x?q=1")),
            (Some("/(?<n>.*)"), "http://b.test/?p=${n}", "/x?q", Some("http://b.test/?p=x&q")),
            (Some("/old"), "/new", "/older", None),
            (None, "https://$host$request_uri", "/\u{e9} \"", Some("https://h.test/%C3%A9%20%22")),
            (None, "https://a.test/$$1", "/", Some("https://a.test/$1")),
        ];
        for (from, to, path, expected) in cases {
            assert_eq!(location(from, to, "h.test", path).as_deref(), expected, "{to} {path}");
        }
    }

    #[test]
    fn a_client_cannot_choose_the_host() {
        for to in [
            "$request_uri",
            "/$1",
            "//evil.test",
            "https://$1/",
            "https://a.test$1",
            "https://a.test:$1",
            "https://a@$host$request_uri",
            "https://$request_uri",
            "https:///x",
            "https://",
            "ftp://a.test/",
            "/a b",
            "/\\evil.test",
            "/a#b",
            "/a\r\nX: y",
            "https://a.test/$2",
            "",
        ] {
            assert!(Redirect::new(302, Some("/old(.*)"), to).is_err(), "{to:?}");
        }
        assert!(Redirect::new(302, None, "https://a.test/$1").is_err());
        assert!(Redirect::new(200, None, "https://a.test/").is_err());
        assert!(Redirect::new(302, Some("("), "https://a.test/").is_err());
    }
}
