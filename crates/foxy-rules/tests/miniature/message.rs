//! Requests and responses of the miniature cache: the values of the first line, the header lines in
//! order, and a complete body.

use foxy_rules::{Fields, Validators, cache_key};

/// The header lines of a message.
#[derive(Clone, Debug, Default)]
pub struct Lines(pub Vec<(String, String)>);

impl Fields for Lines {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.0.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }
}

impl Lines {
    pub fn add(&mut self, name: &str, value: impl Into<String>) {
        self.0.push((name.to_owned(), value.into()));
    }

    /// Removes all lines with these names.
    pub fn remove(&mut self, names: &[&str]) {
        self.0.retain(|(field, _)| !names.iter().any(|name| field.eq_ignore_ascii_case(name)));
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// The absolute URL of the request, with the scheme `http`.
    pub url: String,
    pub fields: Lines,
}

impl Request {
    pub fn key(&self) -> Vec<u8> {
        let rest = self.url.strip_prefix("http://").expect("an http URL");
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        cache_key("http", authority.as_bytes(), path.as_bytes())
    }

    /// Returns the GET that the cache sends to the origin for this request. The conditions of this
    /// GET come from the stale response, not from the client.
    pub fn for_cache(&self, stale: Option<&Lines>) -> Self {
        let mut fields = self.fields.clone();
        fields.remove(&["if-none-match", "if-modified-since", "if-range", "range"]);
        let validators = stale.map(Validators::of).unwrap_or_default();
        let conditions =
            [("If-None-Match", validators.etag), ("If-Modified-Since", validators.last_modified)];
        for (name, value) in conditions.into_iter().filter_map(|(name, value)| Some((name, value?)))
        {
            fields.add(name, String::from_utf8_lossy(value));
        }
        Self { method: "GET".to_owned(), url: self.url.clone(), fields }
    }
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub fields: Lines,
    pub body: Vec<u8>,
}
