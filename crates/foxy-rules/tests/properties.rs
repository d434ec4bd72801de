//! Tests properties that must hold for every message, with generated messages.

use foxy_base::WallTime;
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::reuse::{
    DISCONNECTED_LIMIT, Failure, Permit, Reuse, Stored, may_reuse, may_reuse_after,
};
use foxy_rules::storable::{Exchange, Storability, storability};
use foxy_rules::validate::{evaluate, is_about};
use foxy_rules::{
    Fields, Multipart, Policy, RangeAnswer, RangeSpec, RequestControl, ResponseControl, Role, Span,
    UpstreamRange, Vary, requested_range, upstream_range,
};
use proptest::prelude::*;

fn directive() -> impl Strategy<Value = String> {
    const NAMES: [&str; 13] = [
        "max-age",
        "s-maxage",
        "no-cache",
        "no-store",
        "private",
        "public",
        "must-revalidate",
        "max-stale",
        "min-fresh",
        "proxy-revalidate",
        "stale-while-revalidate",
        "stale-if-error",
        "x",
    ];
    (prop::sample::select(&NAMES[..]), prop::option::of(0u64..500)).prop_map(|(name, argument)| {
        match argument {
            Some(argument) => format!("{name}={argument}"),
            None => name.to_owned(),
        }
    })
}

fn control() -> impl Strategy<Value = String> {
    prop::collection::vec(directive(), 0..5).prop_map(|directives| directives.join(", "))
}

fn asked_range() -> impl Strategy<Value = RangeSpec> {
    let span = (0u64..5000, 0u64..600)
        .prop_map(|(first, more)| RangeSpec::Span(Span { first, last: first + more }));
    let open = (0u64..5000).prop_map(|first| RangeSpec::Span(Span { first, last: u64::MAX }));
    prop_oneof![6 => span, 1 => open, 1 => (0u64..5000).prop_map(RangeSpec::Suffix)]
}

fn range_value(set: &[RangeSpec]) -> String {
    let member = |spec: &RangeSpec| match *spec {
        RangeSpec::Span(Span { first, last: u64::MAX }) => format!("{first}-"),
        RangeSpec::Span(Span { first, last }) => format!("{first}-{last}"),
        RangeSpec::Suffix(count) => format!("-{count}"),
    };
    format!("bytes={}", set.iter().map(member).collect::<Vec<_>>().join(","))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_called_fresh_past_its_lifetime(request in control(), response in control(), age in 0u64..1000) {
        let fields = [("Cache-Control", response.as_str())];
        let received = WallTime::from_seconds(1_000_000);
        let control = ResponseControl::of(&fields[..]);
        let limit = lifetime(200, &fields[..], &control, &Policy::default(), received, b"http://a/").seconds();
        let stored = Stored { control: &control, lifetime: limit, times: StoredTimes { received, initial_age: 0 } };
        let asked = RequestControl::of(&[("Cache-Control", request.as_str())][..]);
        let now = WallTime::from_seconds(1_000_000 + age);
        let named = |by: u64, permit: Permit| match permit {
            Permit::MaxStale => asked.max_stale.is_some_and(|most| by <= most),
            Permit::WhileRevalidate => control.stale_while_revalidate.is_some_and(|most| by <= most),
            Permit::IfError => control.stale_if_error.max(asked.stale_if_error).is_some_and(|most| by <= most),
            Permit::Disconnected => by <= DISCONNECTED_LIMIT,
        };
        let stale = |by: u64, permit: Permit| {
            by + limit == age && named(by, permit) && !control.forbids_stale() && !asked.no_cache
        };
        match may_reuse(&asked, stored, now) {
            Reuse::Fresh { left } => prop_assert!(left > 0 && age + left == limit && !control.no_cache),
            Reuse::Stale { by, permit } => prop_assert!(stale(by, permit), "{:?}", permit),
            Reuse::Revalidate(_) => {}
        }
        for failure in [Failure::Unreachable, Failure::Status(503), Failure::Status(404)] {
            if let Some((by, permit)) = may_reuse_after(failure, &asked, stored, now) {
                prop_assert!(stale(by, permit) && failure.is_error(), "{:?} {:?}", failure, permit);
            }
        }
    }

    #[test]
    fn nothing_private_or_not_to_be_stored_is_stored(request in control(), response in control(), status in 100u16..600) {
        let asked = [("Cache-Control", request.as_str())];
        let fields = [("Cache-Control", response.as_str()), ("ETag", "\"a\"")];
        let exchange = Exchange { method: "GET", target: b"http://a/", request: &asked[..], status, response: &fields[..], received: WallTime(0), policy: Role::Gateway.into() };
        if storability(exchange) == Storability::Store {
            let control = ResponseControl::of(&fields[..]);
            prop_assert!(!control.no_store && !control.private && !request.contains("no-store"));
        }
    }

    #[test]
    fn age_never_falls(initial in 0u64..1000, one in 0u64..10_000, more in 0u64..10_000) {
        let times = StoredTimes { received: WallTime(5_000), initial_age: initial };
        prop_assert!(times.age(WallTime(one)) <= times.age(WallTime(one + more)));
    }

    #[test]
    fn no_bytes_are_too_strange_to_read(
        one in prop::collection::vec(any::<u8>(), 0..40),
        other in "[\\x00-\\x7f]{0,40}",
        length in any::<u64>(),
        now in any::<u64>(),
    ) {
        const NAMES: [&str; 17] = [
            "age", "authorization", "cache-control", "cdn-cache-control", "connection", "date", "etag", "expires", "if-modified-since",
            "if-none-match", "if-range", "last-modified", "location", "pragma", "range", "set-cookie", "vary",
        ];
        let lines = |value: &[u8]| Raw(NAMES.iter().map(|name| (*name, value.to_vec())).collect());
        let (fields, others, now) = (lines(&one), lines(other.as_bytes()), WallTime(now));
        for (request, response) in [(&fields, &others), (&others, &fields)] {
            let _ = RequestControl::of(request);
            let _ = Vary::of(response).map(|vary| vary.key(request));
            let _ = StoredTimes::new(response, now, now).age(now);
            let _ = storability(Exchange { method: "GET", target: b"http://a/", request, status: 200, response, received: now, policy: Role::Gateway.into() });
            let _ = evaluate(request, 200, response, now);
            let _ = is_about(request, response);
            let _ = also_invalidated(response, "http://a.test/b");
            if let RangeAnswer::Part(Span { first, last }) = requested_range(request, response, length) {
                prop_assert!(first <= last && last < length);
            }
            let _ = upstream_range(&one);
        }
    }

    #[test]
    fn several_ranges_are_the_asked_bytes_once_each_and_never_more_than_the_whole(
        set in prop::collection::vec(asked_range(), 1..20),
        length in 1u64..4000,
    ) {
        let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        let value = range_value(&set);
        let answer = requested_range(&[("Range", value.as_str())][..], &[][..] as &[(&str, &str)], length);
        let spans = match &answer {
            RangeAnswer::Several(spans) => spans.clone(),
            RangeAnswer::Part(span) => vec![*span],
            RangeAnswer::Whole => { prop_assert!(set.len() > 16); return Ok(()); }
            RangeAnswer::Unsatisfiable => Vec::new(),
        };
        let asked: Vec<Span> = set.iter().filter_map(|spec| spec.within(length)).collect();
        let holds = |one: &Span, other: &Span| one.first <= other.first && other.last <= one.last;
        prop_assert!(asked.iter().all(|asked| spans.iter().any(|span| holds(span, asked))), "nothing is left out");
        for (at, span) in spans.iter().enumerate() {
            prop_assert!(span.first <= span.last && span.last < length);
            prop_assert!(spans[..at].iter().all(|other| other.last + 1 < span.first || span.last + 1 < other.first));
        }
        if let Some(layout) = Multipart::new(&spans, length, Some(b"text/plain"), (7, 9)) {
            let mut sent = Vec::new();
            for (head, span) in layout.parts() {
                sent.extend_from_slice(head);
                sent.extend_from_slice(&body[span.first as usize..=span.last as usize]);
            }
            sent.extend_from_slice(&layout.end());
            prop_assert!(sent.len() as u64 == layout.length() && layout.length() < length);
        }
    }

    #[test]
    fn an_origin_is_asked_for_each_byte_once(set in prop::collection::vec(asked_range(), 1..20), length in 1u64..4000) {
        let asked = |specs: &[RangeSpec]| {
            let mut bytes = vec![0u8; length as usize];
            for span in specs.iter().filter_map(|spec| spec.within(length)) {
                bytes[span.first as usize..=span.last as usize].iter_mut().for_each(|count| *count += 1);
            }
            bytes
        };
        let value = match upstream_range(range_value(&set).as_bytes()) {
            UpstreamRange::One(spec) => foxy_rules::range::range_value(spec),
            UpstreamRange::Several(value) => value,
            UpstreamRange::Whole => return Ok(()),
            UpstreamRange::Unknown => { prop_assert!(false); return Ok(()); }
        };
        let upstream = asked(&foxy_rules::range::range_set(value.as_bytes()).expect("a set"));
        prop_assert!(upstream.iter().all(|times| *times <= 1), "{}", value);
        prop_assert!(asked(&set).iter().zip(&upstream).all(|(wanted, asked)| *wanted == 0 || *asked == 1), "{}", value);
    }

    #[test]
    fn a_variant_answers_only_requests_with_its_own_values(
        one in prop::option::of("[ab ,;=\"]{0,6}"),
        other in prop::option::of("[ab ,;=\"]{0,6}"),
    ) {
        let vary = Vary::of(&[("Vary", "x-any, x-next")][..]).expect("two names");
        let key = |value: &Option<String>| {
            let lines: Vec<_> = value.iter().map(|value| ("X-Any", value.as_str())).collect();
            vary.key(&lines[..])
        };
        let same = one.as_deref().map(str::trim) == other.as_deref().map(str::trim);
        prop_assert_eq!(key(&one) == key(&other), same);
    }

    #[test]
    fn a_location_never_empties_another_origin(location in "(http://)?[a-z./:@?#%\\\\ -]{0,20}") {
        for key in also_invalidated(&[("Location", location.as_str())][..], "http://a.test/b/c?d") {
            prop_assert!(key.starts_with("http://a.test/"), "{}", key);
        }
    }
}

/// Header lines whose values are arbitrary bytes.
struct Raw(Vec<(&'static str, Vec<u8>)>);

impl Fields for Raw {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(field, _)| *field == name).map(|(_, value)| &value[..])
    }
}
