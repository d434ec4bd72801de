//! Soak test: kills and restarts foxy many times while clients of all kinds send requests. Every
//! response must be right, and no response may be older than a version that a client received
//! before. The rules (`ledger`) consider variants, reloads, renewals, purges and clocks.
//!
//! `docs/proofs.md` describes the test at full length.

mod clients;
mod ledger;
mod machine_clock;
mod origin;
mod pages;
mod plan;
mod storm;
#[path = "../support/mod.rs"]
mod support;
mod wire;

use ledger::{Broken, Ledger};
use plan::{Plan, Soak};
use std::io::Write;
use std::sync::atomic::Ordering;
use support::black_box::{number, variable};
use support::run_record::RunRecord;

/// Number of kills in the short run, which runs with all other tests. The short run has no storms
/// (bursts of thousands of requests).
const SHORT: u64 = 5;

/// Number of URLs that clients request in each storm of a long run.
const STORM: u64 = 16_000;

/// The rules that no response may break, each with the name of its counter in the record.
const RULES: [(&str, Broken); 7] = [
    ("wrong_responses", Broken::Wrong),
    ("older_responses", Broken::Older),
    ("older_responses_after_a_storm", Broken::OlderAfterStorm),
    ("outlived_responses", Broken::Outlived),
    ("purged_responses", Broken::Purged),
    ("unanswered_reloads", Broken::NotReloaded),
    ("failed_starts_and_stops", Broken::Dead),
];

/// Number of findings of each kind that the test prints.
const SHOWN: usize = 2;

#[test]
fn no_answer_is_wrong_or_older_through_kills_stops_and_clock_moves() {
    let kills = number("FOXY_SOAK_KILLS", SHORT);
    let storm = if kills > SHORT { STORM } else { 0 };
    let plan = Plan {
        kills,
        seed: number("FOXY_SOAK_SEED", 1),
        storm_urls: usize::try_from(number("FOXY_SOAK_STORM", storm)).expect("a small number"),
    };
    say(&format!("kill soak: {} kills, seed {}", plan.kills, plan.seed));
    let soak = Soak::new(&plan);
    let outcome = soak.run(&plan);
    let ledger = &soak.shared.ledger;
    let held = RULES.iter().all(|(_, rule)| ledger.broken(*rule) == 0);
    record(&plan, ledger, &outcome, held);
    say(&summary(ledger, &outcome));
    let findings = ledger.findings(SHOWN).join("\n");
    assert!(held, "seed {}:\n{findings}", plan.seed);
    assert!(
        ledger.counts.hits.load(Ordering::Relaxed) > plan.kills,
        "too few hits to prove anything"
    );
}

fn numbers(ledger: &Ledger) -> [(&'static str, u64); 10] {
    let counts = &ledger.counts;
    [
        ("whole_answers", &counts.whole),
        ("hits", &counts.hits),
        ("answers_renewed_by_304", &counts.renewed),
        ("answers_of_shared_fetches", &counts.joined),
        ("reloads", &counts.reloads),
        ("unsafe_requests", &counts.unsafe_requests),
        ("purges", &counts.purges),
        ("broken_off_answers", &counts.broken_off),
        ("refused_requests", &counts.refused),
        ("compared_bytes", &counts.bytes),
    ]
    .map(|(name, counter)| (name, counter.load(Ordering::Relaxed)))
}

fn summary(ledger: &Ledger, outcome: &[(&'static str, u64)]) -> String {
    let rules = RULES.iter().map(|(name, rule)| (*name, ledger.broken(*rule) as u64));
    let all = outcome.iter().copied().chain(numbers(ledger)).chain(rules);
    let texts: Vec<String> = all.map(|(name, value)| format!("{name} {value}")).collect();
    format!("kill soak: {}", texts.join(", "))
}

fn record(plan: &Plan, ledger: &Ledger, outcome: &[(&'static str, u64)], held: bool) {
    let mut record = RunRecord::new("cargo test --test kill_soak", plan.seed, 1.0);
    let rules = RULES.iter().map(|(name, rule)| (*name, ledger.broken(*rule) as u64));
    for (name, value) in outcome.iter().copied().chain(numbers(ledger)).chain(rules) {
        let unit = if name.ends_with("bytes") { "B" } else { "count" };
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        record.measure(name, "foxy", value as f64, unit);
    }
    record.write(variable("FOXY_SOAK_RECORD").as_deref(), held);
}

/// Prints `text`, even while the test harness captures output. Long runs use it to show their
/// progress.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is writable");
}
