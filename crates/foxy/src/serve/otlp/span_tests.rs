//! Tests the spans of transactions.

use super::*;
use foxy_log::transaction::Kept;
use opentelemetry_proto::tonic::common::v1::any_value::Value;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn transaction(texts: &[(Text, &'static str)]) -> Transaction<'static> {
    let mut transaction = Transaction {
        end: 1_700_000_000_500,
        elapsed: Some(120_000),
        status: 200,
        bytes: 900,
        body: Some(700),
        kept: Kept::Sample,
        weight: 64,
        ..Transaction::default()
    };
    let usual = [
        (Text::Client, "192.0.2.7"),
        (Text::Method, "GET"),
        (Text::Url, "https://***@a.test/x?y=1"),
        (Text::Version, "HTTP/2.0"),
        (Text::Outcome, "memory-hit"),
        (Text::Id, "7f"),
    ];
    for (name, text) in usual.iter().chain(texts) {
        transaction.texts[*name as usize] = (*text).into();
    }
    transaction
}

fn spans(transaction: &Transaction<'_>) -> Vec<Span> {
    let spans = of(transaction, &mut Random::new(1));
    assert_eq!(spans.len() as u64, count(transaction));
    spans
}

/// Returns the attributes of a span, one per line.
fn attributes(span: &Span) -> String {
    let shown = span.attributes.iter().map(|attribute| {
        let value = match attribute.value.as_ref().and_then(|any| any.value.as_ref()) {
            Some(Value::StringValue(text)) => text.clone(),
            Some(Value::IntValue(number)) => number.to_string(),
            other => panic!("{other:?}"),
        };
        format!("{}={value}\n", attribute.key)
    });
    shown.collect()
}

#[test]
fn secret_query_parameters_are_left_out() {
    let url = "http://a.test/x?sig=1&y=2&X-Amz-Signature=3&access_token=4=5&flag";
    let found = attributes(&spans(&transaction(&[(Text::Url, url)]))[0]);
    let shown = "http://a.test/x?sig=REDACTED&y=2&X-Amz-Signature=REDACTED&\
                 access_token=REDACTED&flag";
    assert!(found.contains(&format!("url.full={shown}\n")), "{found}");
    assert!(found.contains("url.path=/x\n"), "{found}");
}

#[test]
fn a_hit_is_one_server_span_with_the_attributes_of_the_conventions() {
    let found = spans(&transaction(&[(Text::User, "ann"), (Text::Rules, "assets")]));
    assert_eq!(found.len(), 1);
    let span = &found[0];
    assert_eq!((span.name.as_str(), span.kind()), ("GET", SpanKind::Server));
    assert_eq!(span.start_time_unix_nano, 1_700_000_000_380_000_000);
    assert_eq!(span.end_time_unix_nano, 1_700_000_000_500_000_000);
    assert_eq!((span.status.clone(), span.parent_span_id.len()), (None, 0));
    assert_eq!((span.trace_id.len(), span.span_id.len(), span.flags), (16, 8, 0x101));
    assert_eq!(
        attributes(span),
        "http.request.method=GET\nurl.full=https://***@a.test/x?y=1\nurl.scheme=https\n\
         url.path=/x\nserver.address=a.test\nserver.port=443\nhttp.response.status_code=200\n\
         http.response.body.size=700\nnetwork.protocol.version=2\nclient.address=192.0.2.7\n\
         user.name=ann\nfoxy.request.id=7f\nfoxy.outcome=memory-hit\nfoxy.rules=assets\n\
         foxy.kept=sample\nfoxy.weight=64\n"
    );
}

#[test]
fn a_miss_has_a_child_for_the_fetch_in_the_trace_of_the_client() {
    let mut miss = transaction(&[
        (Text::Outcome, "miss"),
        (Text::Server, "[::1]:8080"),
        (Text::Origin, "shop"),
        (Text::Traceparent, PARENT),
    ]);
    (miss.origin_status, miss.origin_ttfb) = (Some(404), Some(90_000));
    (miss.origin_start, miss.origin_connect) = (Some(10_000), Some(20_000));
    let found = spans(&miss);
    let [server, client] = &found[..] else { panic!("{found:?}") };
    let trace = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
    assert!(found.iter().all(|span| span.trace_id == trace), "{found:?}");
    assert_eq!(server.parent_span_id, 0x00f0_67aa_0ba9_02b7_u64.to_be_bytes());
    assert_eq!((server.flags, client.flags), (0x301, 0x101));
    assert_eq!((&client.parent_span_id, client.kind()), (&server.span_id, SpanKind::Client));
    let since = |time: u64| (time - server.start_time_unix_nano) / 1_000_000;
    assert_eq!(since(client.start_time_unix_nano), 10);
    assert_eq!(since(client.events[0].time_unix_nano), 30);
    assert_eq!(since(client.end_time_unix_nano), 100);
    assert_eq!((server.status.is_some(), client.status.is_some()), (false, true));
    assert_eq!(
        attributes(client),
        "http.request.method=GET\nurl.full=https://***@a.test/x?y=1\nurl.scheme=https\n\
         server.address=::1\nserver.port=8080\nhttp.response.status_code=404\nerror.type=404\n\
         foxy.origin=shop\n"
    );
}

#[test]
fn a_request_that_joined_a_fetch_has_no_span_for_it() {
    let mut joined = transaction(&[(Text::Outcome, "collapsed")]);
    joined.origin_ttfb = Some(90_000);
    assert_eq!(spans(&joined).len(), 1);
}

#[test]
fn only_failures_of_foxy_and_origins_are_errors() {
    let failed = |status: u16, texts: &[(Text, &'static str)]| {
        let found = spans(&Transaction { status, ..transaction(texts) });
        let attributes = attributes(&found[0]);
        let kind = attributes.lines().find_map(|line| line.strip_prefix("error.type="));
        assert_eq!(found[0].status.is_some(), kind.is_some(), "{attributes}");
        kind.map(str::to_owned)
    };
    let refused = [(Text::Outcome, "refused"), (Text::Reason, "denied-by-rule")];
    let silent = [(Text::Outcome, "origin-failed"), (Text::Reason, "connect-timeout")];
    let cut = [(Text::Outcome, "cut"), (Text::Cut, "broke-off")];
    for (status, texts, expected) in [
        (403, &refused[..], None),
        (404, &[][..], None),
        (504, &silent[..], Some("connect-timeout")),
        (500, &[][..], Some("500")),
        (200, &cut[..], Some("broke-off")),
    ] {
        assert_eq!(failed(status, texts).as_deref(), expected, "{status}");
    }
}

#[test]
fn strange_methods_and_tunnels_keep_the_names_few() {
    let odd = spans(&transaction(&[(Text::Method, "BREW")]));
    assert_eq!(odd[0].name, "HTTP");
    let text = attributes(&odd[0]);
    assert!(text.starts_with("http.request.method=_OTHER\nhttp.request.method_original=BREW\n"));
    let tunnel = spans(&transaction(&[(Text::Method, "CONNECT"), (Text::Url, "a.test:8443")]));
    let text = attributes(&tunnel[0]);
    assert!(text.contains("server.address=a.test\nserver.port=8443\n"), "{text}");
    assert!(!text.contains("url."), "{text}");
}
