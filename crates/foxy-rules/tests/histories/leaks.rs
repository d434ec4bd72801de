//! Tests properties that hold for every history of a cache. No response answers for another key,
//! host, variant or user. No stale response counts as fresh. No response becomes younger.

use crate::history::{History, START, Saw, exchange_of, request};
use foxy_base::WallTime;
use foxy_rules::{Fields, Role, Vary};
use proptest::prelude::*;

/// A generated exchange: the seconds to wait before it, the request, and the origin's response.
#[derive(Clone, Debug)]
struct Exchange {
    wait: u64,
    url: String,
    lines: Vec<String>,
    says: String,
}

fn lines(all: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    prop::sample::subsequence(all, 0..=2)
        .prop_map(|lines| lines.into_iter().map(str::to_owned).collect())
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let url = prop::sample::select(&["a.test/x", "a.test/y", "b.test/x", "a.test:81/x"][..]);
    let asked = lines(&[
        "Authorization: one",
        "Authorization: two",
        "Accept: a",
        "Accept: b",
        "Cookie: c",
        "Cache-Control: max-stale",
        "Cache-Control: no-cache",
        "Cache-Control: no-store",
        "Cache-Control: stale-if-error=20",
    ]);
    let status = prop::sample::select(&["200", "200", "200", "304", "404", "503", ""][..]);
    let said = prop::sample::subsequence(
        &[
            "ETag: \"a\"",
            "ETag: \"b\"",
            "Vary: accept",
            "Vary: cookie, accept",
            "Cache-Control: max-age=10",
            "Cache-Control: public",
            "Cache-Control: private",
            "Cache-Control: no-cache",
            "Cache-Control: must-revalidate",
            "Cache-Control: stale-while-revalidate=10",
            "Cache-Control: stale-if-error=10",
            "CDN-Cache-Control: max-age=15",
            "Age: 3",
        ][..],
        0..=5,
    );
    (0u64..15, url, asked, status, said).prop_map(|(wait, url, lines, status, said)| {
        let says = if status.is_empty() {
            String::new()
        } else {
            format!("{status}\n{}", said.join("\n"))
        };
        Exchange { wait, url: format!("http://{url}"), lines, says }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_history_leaks_or_lies(history in prop::collection::vec(exchange(), 1..25), gateway in any::<bool>()) {
        let role = if gateway { Role::Gateway } else { Role::Proxy };
        let mut cache = History::new(role);
        let mut at = 0;
        for exchange in &history {
            at += exchange.wait;
            let now = WallTime::from_seconds(START + at);
            let text = format!("GET {}\n{}", exchange.url, exchange.lines.join("\n"));
            let request = request(&text);
            let before = cache.find(&request).map(|entry| {
                let vary = Vary::of(&entry.fields).expect("stored");
                let users = entry.control.public || entry.control.must_revalidate || entry.control.s_maxage.is_some();
                let own = vary.key(&entry.request.fields) == vary.key(&request.fields);
                let shared = users || !entry.request.fields.has("authorization");
                let age = entry.times.age(now);
                let mine = own && shared && entry.request.url == exchange.url;
                (exchange_of(&entry.body), mine, age, entry.lifetime, entry.control.clone())
            });
            let saw = cache.ask(at, &text, &exchange.says);
            match (saw, before) {
                (Saw::Fresh(body), Some((stored, mine, age, lifetime, control))) => {
                    prop_assert!(body == stored && mine && age < lifetime && !control.no_cache, "{:?}", exchange);
                }
                (Saw::Stale(body, permit), Some((stored, mine, age, lifetime, control))) => {
                    prop_assert!(body == stored && mine && age >= lifetime, "{:?} {:?}", exchange, permit);
                    prop_assert!(!control.forbids_stale(), "{:?} {:?}", exchange, permit);
                }
                (Saw::Confirmed(body), Some((stored, mine, ..))) => {
                    prop_assert!(body == stored && mine && exchange.says.starts_with("304"), "{:?}", exchange);
                }
                (Saw::Origin | Saw::Nothing, _) => {}
                (saw, None) => prop_assert!(false, "{:?} out of nothing for {:?}", saw, exchange),
            }
        }
    }

    #[test]
    fn an_age_is_never_below_what_was_said_and_never_falls(
        said in "[-+0-9a-z., ]{0,8}",
        dated in 0u64..200,
        waits in prop::collection::vec(0u64..1000, 1..20),
    ) {
        let date = format!("Sun, 06 Nov 1994 08:{:02}:{:02} GMT", 46 + dated / 60, dated % 60);
        let fields = [("Date", date.as_str()), ("Age", said.as_str())];
        let received = WallTime::from_seconds(START);
        let times = foxy_rules::StoredTimes::new(&fields[..], received, received);
        if let Ok(valid) = said.trim().parse::<u32>()
            && !said.contains('+')
        {
            prop_assert!(times.initial_age >= u64::from(valid).min(1 << 31));
        }
        let (mut now, mut age) = (START, times.initial_age);
        for wait in waits {
            now += wait;
            let later = times.age(WallTime::from_seconds(now));
            prop_assert!(later >= age);
            age = later;
        }
    }
}
