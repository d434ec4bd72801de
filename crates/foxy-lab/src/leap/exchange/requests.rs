//! Produces the requests of a run from a workload or a trace.

use super::message::Message;
use bytes::Bytes;
use foxy_http::Scheme;
use foxy_http::{Authority, Method};
use foxy_workload::trace::{Get, Other, Verb};
use foxy_workload::{BodyStream, RequestStream, Trace, Workload, replay};
use std::sync::Arc;
use std::time::Duration;

/// A request of the run. Every path (proxy or origin) receives a copy of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The scheme of the URL.
    pub scheme: Scheme,
    /// The server's name, with the port if it is not the scheme's default port.
    pub authority: Arc<str>,
    /// The path and the query of the URL.
    pub path: String,
    /// The method, the fields and the body.
    pub message: Arc<Message>,
    /// The start time that the trace recorded, counted from the trace's first request.
    pub at: Duration,
}

impl Asked {
    /// Creates a plain GET of an `http` URL.
    pub fn get(authority: Arc<str>, path: String, at: Duration) -> Self {
        Self { scheme: Scheme::Http, authority, path, message: Arc::default(), at }
    }

    /// Returns the same request for another scheme (`http` or `https`).
    pub fn over(self, scheme: Scheme) -> Self {
        Self { scheme, ..self }
    }

    /// Returns the full URL.
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme.as_str(), self.authority, self.path)
    }

    pub(crate) fn authority_with_port(&self) -> String {
        match Authority::parse(self.authority.as_bytes()) {
            Some(Authority { port: Some(_), .. }) | None => self.authority.to_string(),
            Some(_) => format!("{}:{}", self.authority, self.scheme.default_port()),
        }
    }

    pub(crate) fn key(&self) -> String {
        self.message.key(&self.url())
    }
}

/// Returns the first `count` requests of a workload, for foxy's own origin at `authority`. Returns
/// `None` unless the model of the workload is `objects/1`, which has only plain GETs to one server.
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

/// The body length in bytes of a replayed POST or PUT. Any value would do, because traces do not
/// record the length.
const SENT: usize = 1000;

/// Returns the requests of a trace for foxy's own origin at `authority`. Each pair of URL and size
/// becomes an object of this size. Each POST or PUT has its own generated body, which is the same
/// in every run. At equal times, GETs come before other methods.
pub fn of_trace(trace: &Trace, authority: Arc<str>) -> impl Iterator<Item = Asked> + '_ {
    let (mut gets, mut others) =
        (trace.gets.iter().peekable(), trace.others.iter().zip(0..).peekable());
    let asked = move |get: &Get| {
        let path = replay::object(get.url, get.size).to_string();
        Asked::get(Arc::clone(&authority), path, Duration::from_micros(get.time))
    };
    std::iter::from_fn(move || {
        let other =
            others.next_if(|(other, _)| gets.peek().is_none_or(|get| other.get.time < get.time));
        let Some((other, number)) = other else { return gets.next().map(&asked) };
        Some(Asked { message: Arc::new(message(other, number)), ..asked(&other.get) })
    })
}

fn message(other: &Other, number: u64) -> Message {
    let method = match other.verb {
        Verb::Head => Method::Head,
        Verb::Post => Method::Post,
        Verb::Put => Method::Put,
        Verb::Delete => Method::Delete,
    };
    if !matches!(other.verb, Verb::Post | Verb::Put) {
        return Message { method, ..Message::default() };
    }
    let mut body = vec![0; SENT];
    BodyStream::new(u64::from(other.get.url), number).fill(0, &mut body);
    let fields = [("Content-Type", "application/octet-stream".as_bytes())].into_iter().collect();
    Message { method, fields, body: Some(Bytes::from(body)), ..Message::default() }
}

/// Returns the GETs of a trace, for the real servers that its URLs name. Skips invalid URLs, and
/// URLs other than `http` and `https`.
pub fn live(trace: &Trace) -> impl Iterator<Item = Asked> + '_ {
    trace.gets.iter().filter_map(|get| {
        let url = trace.url_text(get.url);
        let (scheme, rest) = url.split_once("://")?;
        let scheme = Scheme::named(scheme.as_bytes())?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
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
        let trace = trace(&[
            "http://a.test/x?y=1",
            "http://b.test:81",
            "ftp://c.test/",
            "https://d.test/x",
        ]);
        let asked: Vec<Asked> = live(&trace).collect();
        let urls: Vec<String> = asked.iter().map(Asked::url).collect();
        assert_eq!(urls, ["http://a.test/x?y=1", "http://b.test:81/", "https://d.test/x"]);
        assert_eq!(asked[1].at, Duration::from_secs(1));
        let tunnels: Vec<String> = asked.iter().map(Asked::authority_with_port).collect();
        assert_eq!(tunnels, ["a.test:80", "b.test:81", "d.test:443"]);
    }

    #[test]
    fn other_methods_come_at_their_times_and_each_sends_its_own_fixed_body() {
        let line = |time: u32, method: &str, url: &str, size: u32| {
            format!(
                "{time}.000 3 10.0.0.1 TCP_MISS/200 {size} {method} {url} - DIRECT/- text/html\n"
            )
        };
        let text = [
            line(100, "POST", "http://a.test/x", 20),
            line(101, "GET", "http://a.test/x", 50),
            line(102, "POST", "http://a.test/x", 20),
            line(103, "HEAD", "http://a.test/x", 300),
            line(104, "DELETE", "http://a.test/x", 0),
        ];
        let builder = foxy_workload::trace::Builder::of_all_methods();
        let text = text.concat();
        let trace = foxy_workload::trace::read_into(
            builder,
            text.as_bytes(),
            Some(Format::Squid),
            &mut |_| {},
        );
        let trace = trace.expect("a log").0;
        let all = || of_trace(&trace, "o.test".into()).collect::<Vec<Asked>>();
        let asked = all();
        let lines: Vec<String> = asked
            .iter()
            .map(|asked| format!("{} {} {:?}", asked.message.method, asked.path, asked.at))
            .collect();
        let expected = [
            "POST /o/0/20/1 0ns",
            "GET /o/0/50/1 1s",
            "POST /o/0/50/1 2s",
            "HEAD /o/0/50/1 3s",
            "DELETE /o/0/50/1 4s",
        ];
        assert_eq!(lines, expected);
        let sent: Vec<Option<&Bytes>> =
            asked.iter().map(|asked| asked.message.body.as_ref()).collect();
        assert!(sent[0].is_some_and(|body| body.len() == SENT) && sent[0] != sent[2]);
        assert_eq!((sent[1], sent[3], sent[4]), (None, None, None));
        assert_eq!(asked, all());
    }

    #[test]
    fn without_live_servers_each_url_is_an_object_of_its_size() {
        let trace = trace(&["http://a.test/x", "http://b.test/y"]);
        let urls: Vec<String> =
            of_trace(&trace, "o.test".into()).map(|asked| asked.url()).collect();
        assert_eq!(urls, ["http://o.test/o/0/50/1", "http://o.test/o/1/51/1"]);
    }
}
