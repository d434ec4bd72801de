//! What must hold for every message, checked on generated ones.

use foxy_base::WallTime;
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::reuse::{
    DISCONNECTED_LIMIT, Failure, Permit, Reuse, Stored, may_reuse_after, may_reuse_under,
};
use foxy_rules::storable::{Exchange, Storability, storability};
use foxy_rules::validate::{evaluate, is_about};
use foxy_rules::{Fields, RangeAnswer, RequestControl, ResponseControl, Role, Vary, requested_range};
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
    (prop::sample::select(&NAMES[..]), prop::option::of(0u64..500)).prop_map(
        |(name, argument)| match argument {
            Some(argument) => format!("{name}={argument}"),
            None => name.to_owned(),
        },
    )
}

fn control() -> impl Strategy<Value = String> {
    prop::collection::vec(directive(), 0..5).prop_map(|directives| directives.join(", "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_called_fresh_past_its_lifetime(request in control(), response in control(), age in 0u64..1000) {
        let fields = [("Cache-Control", response.as_str())];
        let received = WallTime::from_seconds(1_000_000);
        let control = ResponseControl::of(&fields[..]);
        let limit = lifetime(200, &fields[..], &control, received, b"http://a/").seconds();
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
        match may_reuse_under(&asked, stored, now) {
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
        let exchange = Exchange { method: "GET", target: b"http://a/", request: &asked[..], status, response: &fields[..], received: WallTime(0), role: Role::Gateway };
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
            let _ = storability(Exchange { method: "GET", target: b"http://a/", request, status: 200, response, received: now, role: Role::Gateway });
            let _ = evaluate(request, 200, response, now);
            let _ = is_about(request, response);
            let _ = also_invalidated(response, "http://a.test/b");
            if let RangeAnswer::Part { first, last } = requested_range(request, response, length) {
                prop_assert!(first <= last && last < length);
            }
        }
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

/// Header lines of any bytes.
struct Raw(Vec<(&'static str, Vec<u8>)>);

impl Fields for Raw {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(field, _)| *field == name).map(|(_, value)| &value[..])
    }
}
