//! What must hold for every message, checked on generated ones.

use foxy_base::WallTime;
use foxy_rules::freshness::{StoredTimes, lifetime};
use foxy_rules::reuse::{Reuse, Stored, may_reuse};
use foxy_rules::storable::{Exchange, Storability, storability};
use foxy_rules::{ResponseControl, Vary, date, requested_range};
use proptest::prelude::*;

fn directive() -> impl Strategy<Value = String> {
    const NAMES: [&str; 10] = [
        "max-age",
        "s-maxage",
        "no-cache",
        "no-store",
        "private",
        "public",
        "must-revalidate",
        "max-stale",
        "min-fresh",
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
        let limit = lifetime(200, &fields[..], received).seconds();
        let control = ResponseControl::of(&fields[..]);
        let stored = Stored { control: &control, lifetime: limit, times: StoredTimes { received, initial_age: 0 } };
        let asked = [("Cache-Control", request.as_str())];
        match may_reuse(&asked[..], stored, WallTime::from_seconds(1_000_000 + age)) {
            Reuse::Fresh { left } => prop_assert_eq!(age + left, limit),
            Reuse::Stale { by } => {
                prop_assert_eq!(limit + by, age);
                prop_assert!(request.contains("max-stale") && !control.must_revalidate && !control.no_cache);
            }
            Reuse::Revalidate(_) => {}
        }
    }

    #[test]
    fn nothing_private_or_not_to_be_stored_is_stored(request in control(), response in control(), status in 100u16..600) {
        let asked = [("Cache-Control", request.as_str())];
        let fields = [("Cache-Control", response.as_str()), ("ETag", "\"a\"")];
        let exchange = Exchange { method: "GET", request: &asked[..], status, response: &fields[..], received: WallTime(0) };
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
    fn no_text_is_too_strange_to_read(text in any::<String>(), other in any::<String>(), length in any::<u64>()) {
        let fields = [("Cache-Control", text.as_str()), ("Vary", other.as_str()), ("Range", text.as_str()),
            ("Age", text.as_str()), ("Expires", other.as_str()), ("Date", text.as_str())];
        let _ = ResponseControl::of(&fields[..]);
        let _ = Vary::of(&fields[..]).map(|vary| vary.key(&fields[..]));
        let _ = date::parse(text.as_bytes(), WallTime(0));
        let _ = lifetime(200, &fields[..], WallTime(0));
        if let foxy_rules::RangeAnswer::Part { first, last } = requested_range(&fields[..], &fields[..], length) {
            prop_assert!(first <= last && last < length);
        }
    }
}
