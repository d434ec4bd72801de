//! Tests the export of traces and log records over OTLP, with a collector of the test and with the
//! OpenTelemetry Collector.

use crate::support::{Foxy, Origin, Response, request};
use foxy_testkit::http::{head_length, header};
use foxy_testkit::origin::{TestOrigin, listen};
use foxy_testkit::wait::until;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector that keeps all spans and the texts of log records.
struct TestCollector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Span>>>,
    texts: Arc<Mutex<Vec<String>>>,
}

impl TestCollector {
    fn start() -> Self {
        let (spans, texts) = (Arc::<Mutex<Vec<Span>>>::default(), Arc::default());
        let (kept, told) = (Arc::clone(&spans), Arc::<Mutex<Vec<String>>>::clone(&texts));
        let address = listen(move |mut stream| {
            let Some((head, body)) = read(&mut stream) else { return };
            assert_eq!(header(&head, "content-type"), Some("application/x-protobuf"), "{head}");
            if head.starts_with("POST /v1/traces ") {
                let sent = ExportTraceServiceRequest::decode(&body[..]).expect("traces");
                let of = sent.resource_spans.into_iter().flat_map(|of| {
                    let resource = of.resource.expect("a resource");
                    assert_eq!(text(&resource.attributes, "service.name"), "foxy");
                    of.scope_spans.into_iter().flat_map(|scope| scope.spans)
                });
                kept.lock().expect("spans").extend(of);
            } else {
                assert!(head.starts_with("POST /v1/logs "), "{head}");
                let sent = ExportLogsServiceRequest::decode(&body[..]).expect("log records");
                let scopes = sent.resource_logs.into_iter().flat_map(|of| of.scope_logs);
                let records = scopes.flat_map(|scope| scope.log_records);
                let texts = records.map(|record| shown(record.body.as_ref()));
                told.lock().expect("texts").extend(texts);
            }
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").expect("sent");
        });
        Self { address, spans, texts }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until `count` spans are there, and returns them.
    fn spans(&self, count: usize) -> Vec<Span> {
        until(&format!("{count} spans"), || {
            let spans = self.spans.lock().expect("spans");
            (spans.len() == count).then(|| spans.clone())
        })
    }
}

/// Reads the head and the body of a request.
fn read(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = head_length(&bytes) {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length: usize = header(&head, "content-length")?.parse().ok()?;
            if bytes.len() >= end + length {
                return Some((head, bytes[end..end + length].to_vec()));
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

fn shown(value: Option<&AnyValue>) -> String {
    match value.and_then(|any| any.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

/// Returns the value of an attribute, or an empty text.
fn text(attributes: &[KeyValue], key: &str) -> String {
    let found = attributes.iter().find(|attribute| attribute.key == key);
    found.map(|attribute| shown(attribute.value.as_ref())).unwrap_or_default()
}

fn get(foxy: &Foxy, url: &str, fields: &str) -> Response {
    let head = format!("GET {url} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{fields}\r\n");
    request(foxy.proxy, &head)
}

fn wait_for_metric(foxy: &Foxy, line: &str) {
    let shown = || foxy.admin("/metrics").body;
    until(line, || shown().lines().any(|shown| shown == line).then_some(()));
}

fn start(folder: &tempfile::TempDir, otlp: &str) -> Foxy {
    Foxy::start(&folder.path().join("store"), &["--otlp", otlp])
}

#[test]
fn requests_become_traces_and_messages_become_log_records() {
    let (folder, collector) = (tempfile::tempdir().expect("a folder"), TestCollector::start());
    let (foxy, origin) = (start(&folder, &collector.url()), Origin::start());
    let url = origin.url("page");
    let traceparent = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01\r\n");
    get(&foxy, &url, &traceparent);
    let spans = collector.spans(2);
    let [server, client] = &spans[..] else { panic!("{spans:?}") };
    let trace: String = server.trace_id.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!((trace.as_str(), &client.trace_id), (TRACE, &server.trace_id));
    assert_eq!(server.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!(client.parent_span_id, server.span_id);
    assert_eq!(text(&server.attributes, "url.full"), url);
    assert_eq!(text(&server.attributes, "foxy.outcome"), "miss");
    assert_eq!(text(&client.attributes, "http.response.status_code"), "200");
    assert!(client.start_time_unix_nano >= server.start_time_unix_nano, "{spans:?}");
    assert!(client.end_time_unix_nano > client.start_time_unix_nano, "{spans:?}");
    get(&foxy, &url, "");
    assert_eq!(get(&foxy, "http://127.0.0.2:1/", "").status, 502);
    get(&foxy, &url.replace("http://", "http://user:word@"), "");
    let later = collector.spans(5);
    for outcome in ["memory-hit", "origin-failed", "refused"] {
        let mut of_outcome =
            later.iter().filter(|span| text(&span.attributes, "foxy.outcome") == outcome);
        let span = of_outcome.next().unwrap_or_else(|| panic!("no {outcome} in {later:?}"));
        assert!(span.trace_id != server.trace_id && span.parent_span_id.is_empty(), "{span:?}");
    }
    let urls: Vec<_> = later.iter().map(|span| text(&span.attributes, "url.full")).collect();
    assert!(urls.contains(&url.replace("http://", "http://***@")), "{urls:?}");
    wait_for_metric(&foxy, "foxy_otlp_exported_total{signal=\"spans\"} 5");
    foxy.signal("TERM");
    foxy.wait();
    let texts = collector.texts.lock().expect("texts");
    let is_told = |begin: &str| texts.iter().any(|text| text.starts_with(begin));
    assert!(is_told("foxy: stopping after the requests"), "{texts:?}");
    let secret = |text: &String| text.contains("word");
    assert!(!texts.iter().any(secret), "{texts:?}");
}

#[test]
fn the_origin_receives_the_clients_trace_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = start(&folder, "http://127.0.0.1:1");
    let field = format!("traceparent: 00-{TRACE}-00f067aa0ba902b7-01");
    let seen = TestOrigin::start(|_, _| foxy_testkit::http::ok("", b"x"));
    get(&foxy, &seen.url("/x"), &format!("{field}\r\ntracestate: a=b\r\n"));
    let head = seen.heads.lock().expect("heads")[0].clone();
    for line in [field.as_str(), "tracestate: a=b"] {
        assert!(head.contains(&format!("{line}\r\n")), "{head}");
    }
}

#[test]
fn a_silent_collector_costs_spans_but_no_request_and_no_late_stop() {
    let folder = tempfile::tempdir().expect("a folder");
    let held = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&held);
    let silent = listen(move |stream| kept.lock().expect("streams").push(stream));
    let (foxy, origin) = (start(&folder, &format!("http://{silent}")), Origin::start());
    let url = origin.url("page");
    for _ in 0..20 {
        assert_eq!(get(&foxy, &url, "").status, 200);
    }
    until("a connection to the collector", || {
        (!held.lock().expect("streams").is_empty()).then_some(())
    });
    foxy.signal("TERM");
    assert!(foxy.wait().0.success());
    // The signal ends the first attempt to export. foxy then makes a second attempt, which ends
    // before the usual time limit of a request.
    assert_eq!(held.lock().expect("streams").len(), 2);
}

#[test]
fn a_collector_that_takes_only_traces_is_reported_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let traces = TestOrigin::start(|head, _| match head.starts_with("POST /v1/traces ") {
        true => foxy_testkit::http::ok("", b""),
        false => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec(),
    });
    let mut foxy = start(&folder, &format!("http://{}", traces.address));
    let origin = Origin::start();
    get(&foxy, &origin.url("page"), "");
    foxy.report_containing("(otlp): it answers 404; until it takes log records");
    get(&foxy, &origin.url("other"), "");
    wait_for_metric(&foxy, "foxy_otlp_exported_total{signal=\"spans\"} 4");
    foxy.signal("TERM");
    let (_, later) = foxy.wait();
    assert!(!later.contains("(otlp)"), "{later}");
}

#[test]
fn a_server_that_is_no_collector_is_reported_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let liar = TestOrigin::start(|_, _| foxy_testkit::http::ok("", b"<html>fine</html>"));
    let mut foxy = start(&folder, &format!("http://{}", liar.address));
    let origin = Origin::start();
    get(&foxy, &origin.url("page"), "");
    foxy.report_containing("(otlp): its answer is not OTLP; until it takes traces");
    wait_for_metric(&foxy, "foxy_otlp_dropped_total{signal=\"spans\",reason=\"refused\"} 2");
}
