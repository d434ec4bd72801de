//! Accounts for a finished request: classifies its result, updates the counters, and writes the
//! line in the access log.

use crate::core::counters::Counter;
use crate::core::metrics::exemplar::TraceId;
use crate::core::metrics::request_metrics::RequestOutcome;
use crate::core::metrics::trace_context::TRACEPARENT;
use crate::intercept::Inside;
use crate::request::access::{AccessRecord, CutReason, Finished, authority, without_credentials};
use crate::request::answered::{Aborted, Answered, Progress, SentResponse};
use crate::request::cache_status::CacheStatus;
use crate::request::mode::Mode;
use crate::request::sample::SampledAnswer;
use crate::upstream::{GroupMember, Responder, Scheme, UpstreamSettings};
use crate::worker::Worker;
use foxy_base::{Instant, clock};
use foxy_http::{Headers, RequestHead, TargetForm};
use std::net::SocketAddr;
use std::rc::Rc;

/// How a request ended, for the access log.
pub(crate) enum Ended {
    Answered(Answered),
    Aborted(Aborted),
    Tunnelled(SentResponse),
    Intercepted(Inside, SentResponse),
}

impl From<Result<Answered, Aborted>> for Ended {
    fn from(result: Result<Answered, Aborted>) -> Self {
        result.map_or_else(Self::Aborted, Self::Answered)
    }
}

/// The part of a request that the proxy could read, for the access log.
pub(crate) enum ReadRequest {
    /// The head, and the scheme of the client's connection.
    Head(RequestHead, Scheme),
    /// The first words of a request line, if the proxy could not parse the head.
    Words { method: Vec<u8>, url: Vec<u8> },
}

impl ReadRequest {
    pub(crate) const NOTHING: Self = Self::Words { method: Vec::new(), url: Vec::new() };

    /// Returns the first two words of a request line: the method and the URL. Cuts each word at its
    /// limit in bytes.
    pub(crate) fn words(read: &[u8]) -> Self {
        const MAX_METHOD_BYTES: usize = 32;
        const MAX_URL_BYTES: usize = 2048;
        let line = read.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
        let mut word = |longest: usize| {
            let word = words.next().unwrap_or_default();
            word[..word.len().min(longest)].to_vec()
        };
        Self::Words { method: word(MAX_METHOD_BYTES), url: word(MAX_URL_BYTES) }
    }
}

#[derive(Default)]
struct LoggedRequest<'a> {
    method: &'a [u8],
    url: &'a [u8],
    site: Option<(&'a str, &'a [u8])>,
    version: &'a str,
    referer: Option<&'a [u8]>,
    user_agent: Option<&'a [u8]>,
}

impl<'a> LoggedRequest<'a> {
    fn of(read: &'a ReadRequest, mode: &Mode) -> Self {
        let (head, over) = match read {
            ReadRequest::Head(head, over) => (head, over),
            ReadRequest::Words { method, url } => return Self { method, url, ..Self::default() },
        };
        let is_whole = !matches!(head.target.form(), TargetForm::Origin(_) | TargetForm::Asterisk);
        let host = head.authority().filter(|_| !is_whole && !mode.is_forward());
        Self {
            method: head.method.as_str().as_bytes(),
            url: head.target.raw(),
            site: host.map(|host| (over.as_str(), host)),
            version: head.version.as_str(),
            referer: head.headers.get("referer"),
            user_agent: head.headers.get("user-agent"),
        }
    }
}

/// A request in progress. It is counted and logged when it ends. If the proxy stops earlier, it is
/// counted and logged then.
pub(crate) struct RequestLog<'a> {
    worker: &'a Worker,
    client: SocketAddr,
    started: Instant,
    /// The request as the client sent it. The proxy may change its own copy of the head.
    pub(crate) read: ReadRequest,
    progress: Rc<Progress>,
    is_over: bool,
}

impl<'a> RequestLog<'a> {
    /// Counts a request, and begins its log.
    pub(crate) fn begin(
        worker: &'a Worker,
        client: SocketAddr,
        started: Instant,
        read: ReadRequest,
        progress: &Rc<Progress>,
    ) -> Self {
        worker.counters.add(Counter::Requests, 1);
        let mut log = Self::of_ping(worker, client, started, read, progress);
        log.is_over = false;
        log
    }

    /// Begins the log of a ping of another node, which foxy neither counts nor logs.
    pub(crate) fn of_ping(
        worker: &'a Worker,
        client: SocketAddr,
        started: Instant,
        read: ReadRequest,
        progress: &Rc<Progress>,
    ) -> Self {
        progress.restart(worker.next_request(), started, worker.settings().cache_name);
        Self { worker, client, started, read, progress: Rc::clone(progress), is_over: true }
    }

    /// Counts and logs the request. `bytes` is the number of bytes sent to the client.
    pub(crate) fn end(mut self, ended: &Ended, bytes: u64) {
        self.is_over = true;
        self.worker.counters.add(Counter::BytesToClients, bytes);
        match ended {
            Ended::Answered(Answered { response: sent, .. })
            | Ended::Tunnelled(sent)
            | Ended::Intercepted(_, sent) => {
                if self.progress.client_had_left() {
                    self.worker.counters.add(Counter::ClientsLeft, 1);
                    return self.finish_cut(CutReason::ClientLeft, bytes);
                }
                let outcome = match ended {
                    Ended::Answered(_) => sent.outcome.request_outcome(),
                    _ => RequestOutcome::Tunnel,
                };
                self.finish(outcome, sent, bytes, None);
            }
            Ended::Aborted(Aborted::Client) => {
                self.worker.counters.add(Counter::ClientsLeft, 1);
                self.finish_cut(CutReason::ClientLeft, bytes);
            }
            Ended::Aborted(Aborted::Source) => self.finish_cut(CutReason::BrokeOff, bytes),
        }
    }

    fn finish_cut(&self, cut: CutReason, bytes: u64) {
        let unknown = (0, CacheStatus::Local { detail: cut.name() });
        let (status, outcome) = self.progress.opened().unwrap_or(unknown);
        let body_bytes = self.progress.body();
        let sent = SentResponse { outcome, status, body_bytes, media_type: Default::default() };
        self.finish(RequestOutcome::Cut, &sent, bytes, Some(cut));
    }

    fn finish(
        &self,
        outcome: RequestOutcome,
        sent: &SentResponse,
        bytes: u64,
        cut: Option<CutReason>,
    ) {
        let now = clock::monotonic();
        let elapsed = now.since(self.started);
        let finished = Finished { status: sent.outcome, outcome, cut, elapsed, now };
        let counters = &self.worker.counters;
        counters.requests.count(outcome, sent.status, (elapsed, now), || self.trace());
        counters.requests.count_bytes(outcome, sent.body_bytes);
        // A cut answer counts too, because the bytes from its origin count.
        if sent.outcome.request_outcome().has_cacheable_body() {
            counters.add(Counter::CacheableBytesToClients, sent.body_bytes);
        }
        if outcome == RequestOutcome::OriginFailed && !self.is_get() {
            counters.requests.count_failed_change(sent.body_bytes);
        }
        if let CacheStatus::Error(reason) = sent.outcome {
            counters.errors.add(reason.name());
        }
        if cut.is_none() {
            self.sample(sent, bytes);
        }
        self.log(sent, bytes, cut, &finished);
    }

    /// Passes the answer to the receiver of sampled answers, if the sample contains the request's
    /// cache key.
    fn sample(&self, sent: &SentResponse, bytes: u64) {
        let (sample, key) = (self.worker.shared.sample.as_ref(), self.progress.key());
        let Some((sample, key)) = sample.zip(key) else { return };
        if !sample.takes(key, sent.body_bytes) {
            return;
        }
        let line = LoggedRequest::of(&self.read, &self.worker.settings().mode);
        sample.add(&SampledAnswer {
            key,
            host: authority(line.site, line.url),
            is_get: line.method == b"GET",
            outcome: sent.outcome,
            status: sent.status,
            head_bytes: bytes.saturating_sub(sent.body_bytes),
            body_bytes: sent.body_bytes,
        });
    }

    fn is_get(&self) -> bool {
        LoggedRequest::of(&self.read, &self.worker.settings().mode).method == b"GET"
    }

    /// Returns the id of the trace to which the client's request belongs.
    fn trace(&self) -> Option<TraceId> {
        TraceId::of(self.fields()?.get(TRACEPARENT)?)
    }

    fn fields(&self) -> Option<&Headers> {
        let ReadRequest::Head(head, _) = &self.read else { return None };
        Some(&head.headers)
    }

    fn log(&self, sent: &SentResponse, bytes: u64, cut: Option<CutReason>, finished: &Finished) {
        let sink = self.worker.shared.sink.as_ref();
        let Some(sink) = sink.filter(|sink| sink.wants(finished)) else { return };
        let line = LoggedRequest::of(&self.read, &self.worker.settings().mode);
        let LoggedRequest { method, url, site, version, referer, user_agent } = line;
        let (url, referer) = (without_credentials(url), referer.map(without_credentials));
        let responder = self.progress.responder();
        let parent = peer(self.worker, &responder);
        let server = responder.server.as_ref().and_then(GroupMember::names);
        let server = server.map(|(name, server)| (name, server.authority()));
        let (rules, user) = (self.progress.rules().borrow(), self.progress.user());
        sink.record(&AccessRecord {
            end: clock::wall(),
            started: self.started,
            elapsed: finished.elapsed,
            client: self.client,
            outcome: sent.outcome,
            request_outcome: finished.outcome,
            cut,
            status: sent.status,
            bytes,
            body_bytes: sent.body_bytes,
            method,
            site,
            url: &url,
            version,
            parent: parent.as_deref(),
            node: responder.node.map(|(_, source)| source),
            user: user.as_deref(),
            server: server.as_ref().map(|(name, server)| (*name, server.as_str())),
            rules: rules.names(),
            content_type: sent.media_type.as_bytes(),
            referer: referer.as_deref(),
            user_agent,
            fields: self.fields(),
            id: &self.progress.id(),
            origin: responder.times,
        });
    }
}

/// Returns host and port of the parent proxy or node of the fleet that answered.
fn peer(worker: &Worker, responder: &Responder) -> Option<String> {
    let UpstreamSettings { parents, fleet, .. } = &worker.settings().upstream;
    if let (Some(parents), Some(number)) = (parents, responder.parent) {
        return Some(parents.parent(number).authority());
    }
    let (number, _) = responder.node?;
    fleet.as_ref()?.fleet.node(number).map(|node| node.authority())
}

impl Drop for RequestLog<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let bytes = self.progress.sent();
            self.worker.counters.add(Counter::BytesToClients, bytes);
            self.finish_cut(CutReason::Stopped, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_refused_request_its_first_words_are_told_within_bounds() {
        let long = [b"GET ".as_slice(), &[b'u'; 5000], b" HTTP/1.1"].concat();
        let cases: [(&[u8], &[u8], &[u8]); 6] = [
            (b"GET http://a.test/ HTTP/1.1\r\nbad line\r\n", b"GET", b"http://a.test/"),
            (b"G@T /x", b"G@T", b"/x"),
            (b"GET /a b HTTP/1.1\n", b"GET", b"/a"),
            (b"GE", b"GE", b""),
            (b"", b"", b""),
            (&long, b"GET", &[b'u'; 2048]),
        ];
        for (read, method, url) in cases {
            let words = ReadRequest::words(read);
            let line = LoggedRequest::of(&words, &Mode::Forward);
            assert_eq!((line.method, line.url), (method, url), "{}", read.escape_ascii());
        }
    }
}
