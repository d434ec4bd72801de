//! What is asked for: the objects of a workload, or the gets of a trace.

use super::message::Message;
use crate::Scheme;
use foxy_http::Authority;
use foxy_workload::{RequestStream, Trace, Workload, replay};
use std::sync::Arc;
use std::time::Duration;

/// One request, the same for every path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// How the server is spoken with.
    pub scheme: Scheme,
    /// The server's name, with its port if it is not the usual one.
    pub authority: Arc<str>,
    /// Path and query.
    pub path: String,
    /// Method, fields and body.
    pub message: Arc<Message>,
    /// When it is recorded to begin, after the first.
    pub at: Duration,
}

impl Asked {
    /// A plain GET of our own, of an `http` URL.
    #[must_use]
    pub fn get(authority: Arc<str>, path: String, at: Duration) -> Self {
        Self { scheme: Scheme::Http, authority, path, message: Arc::default(), at }
    }

    /// The same of this scheme.
    #[must_use]
    pub fn over(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// The URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.as_str(), self.authority, self.path)
    }

    /// The authority as CONNECT names it (RFC 9110 §9.3.6).
    pub(super) fn authority_with_port(&self) -> String {
        match Authority::parse(self.authority.as_bytes()) {
            Some(Authority { port: Some(_), .. }) | None => self.authority.to_string(),
            Some(_) => format!("{}:{}", self.authority, self.scheme.default_port()),
        }
    }

    /// What answers must agree about.
    pub(super) fn key(&self) -> String {
        self.message.key(&self.url())
    }
}

/// The first `count` requests of a workload of objects at the verifying origin `authority`; `None` when it has requests other
/// than plain gets of one server.
pub fn of_workload(
    workload: &Workload,
    seed: u64,
    count: u64,
    authority: Arc<str>,
) -> Option<impl Iterator<Item = Asked> + use<>> {
    workload.objects()?;
    let mut stream = RequestStream::new(workload, seed);
    Some((0..count).map(move |_| {
        let path = stream.next_request().content.to_string();
        Asked::get(Arc::clone(&authority), path, Duration::ZERO)
    }))
}

/// The gets of a trace as objects of the recorded sizes at the verifying origin `authority`: each URL is one object, and one
/// with another size is another.
pub fn of_trace(trace: &Trace, authority: Arc<str>) -> impl Iterator<Item = Asked> + '_ {
    trace.gets.iter().map(move |get| {
        let path = replay::object(get.url, get.size).to_string();
        Asked::get(Arc::clone(&authority), path, Duration::from_micros(get.time))
    })
}

/// The gets of a trace at the servers that it names; those that are neither `http` nor `https` are left out.
pub fn live(trace: &Trace) -> impl Iterator<Item = Asked> + '_ {
    trace.gets.iter().filter_map(|get| {
        let url = trace.url_text(get.url);
        let (scheme, rest) = url.split_once("://")?;
        let scheme = Scheme::named(scheme.as_bytes())?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or("");
        let slash = if path.starts_with('/') { "" } else { "/" };
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        let usable = !authority.is_empty() && clean(authority) && clean(path);
        let at = Duration::from_micros(get.time);
        usable.then(|| Asked::get(authority.into(), format!("{slash}{path}"), at).over(scheme))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::trace::{Format, read};

    fn trace(urls: &[&str]) -> Trace {
        let line = |(number, url): (usize, &&str)| {
            format!(
                "{}.500 3 10.0.0.1 TCP_MISS/200 {} GET {url} - DIRECT/- text/html\n",
                100 + number,
                50 + number
            )
        };
        let text: String = urls.iter().enumerate().map(line).collect();
        read(text.as_bytes(), Some(Format::Squid), &mut |_| {}).expect("a log").0
    }

    #[test]
    fn live_requests_are_what_the_log_names() {
        let trace = trace(&["http://a.test/x?y=1", "http://b.test:81", "ftp://c.test/", "https://d.test/x"]);
        let asked: Vec<Asked> = live(&trace).collect();
        let urls: Vec<String> = asked.iter().map(Asked::url).collect();
        assert_eq!(urls, ["http://a.test/x?y=1", "http://b.test:81/", "https://d.test/x"]);
        assert_eq!(asked[1].at, Duration::from_secs(1));
        let tunnels: Vec<String> = asked.iter().map(Asked::authority_with_port).collect();
        assert_eq!(tunnels, ["a.test:80", "b.test:81", "d.test:443"]);
    }

    #[test]
    fn without_live_servers_each_url_is_an_object_of_its_size() {
        let trace = trace(&["http://a.test/x", "http://b.test/y"]);
        let urls: Vec<String> = of_trace(&trace, "o.test".into()).map(|asked| asked.url()).collect();
        assert_eq!(urls, ["http://o.test/o/0/50/1", "http://o.test/o/1/51/1"]);
    }
}
