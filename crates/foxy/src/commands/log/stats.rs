//! `foxy log stats`: a summary of a log on one screen.

use super::sources::{self, Counted, LogSource};
use super::text::{self, duration};
use crate::commands::figures::share;
use crate::failure::Failure;
use crate::terminal;
use foxy_base::{ByteSize, ascii_json};
use foxy_log::field;
use foxy_log::group::{Groups, Totals};
use foxy_log::lines::time;
use foxy_log::query::Query;
use foxy_log::transaction::Transaction;
use serde_json::{Value, json};

/// Number of hosts and of reasons that the summary shows.
const SHOWN: usize = 6;
/// Number of slowest requests that the summary shows.
const SLOWEST: usize = 5;

/// The counts of a part of a log.
struct Summary {
    all: Totals,
    outcomes: Groups,
    hosts: Groups,
    reasons: Groups,
    statuses: Groups,
    /// The slowest requests, slowest first.
    slowest: Vec<Transaction<'static>>,
}

impl Summary {
    fn new() -> Self {
        let by = |name: &str| Groups::by(field::named(name).expect("the table has this field"));
        Self {
            all: Totals::default(),
            outcomes: by("outcome"),
            hosts: by("host"),
            reasons: by("reason"),
            statuses: by("status"),
            slowest: Vec::new(),
        }
    }

    fn add(&mut self, transaction: &Transaction<'_>) {
        self.all.add(transaction);
        self.outcomes.add(transaction);
        self.hosts.add(transaction);
        self.statuses.add(transaction);
        if !transaction.is_hit() {
            self.reasons.add(transaction);
        }
        let is_slower = |other: &Transaction<'_>| other.elapsed < transaction.elapsed;
        if self.slowest.len() < SLOWEST || self.slowest.last().is_some_and(is_slower) {
            self.slowest.push(transaction.clone().into_owned());
            self.sort_slowest();
        }
    }

    fn merge(&mut self, other: Self) {
        self.all.merge(&other.all);
        self.outcomes.merge(other.outcomes);
        self.hosts.merge(other.hosts);
        self.reasons.merge(other.reasons);
        self.statuses.merge(other.statuses);
        self.slowest.extend(other.slowest);
        self.sort_slowest();
    }

    fn sort_slowest(&mut self) {
        self.slowest.sort_by_key(|transaction| u64::MAX - transaction.elapsed.unwrap_or(0));
        self.slowest.truncate(SLOWEST);
    }
}

pub fn run(sources: &[LogSource], query: &Query, as_json: bool) -> Result<(), Failure> {
    let (found, counted) = sources::collect(sources, query, Summary::new, Summary::add)?;
    let mut summary = Summary::new();
    found.into_iter().for_each(|part| summary.merge(part));
    if as_json {
        terminal::print(&ascii_json(&json_of(&summary, &counted).to_string()));
    } else {
        terminal::print(shown(&summary, &counted).trim_end());
    }
    counted.report_unread();
    Ok(())
}

/// Describes a log as JSON. `all` has the sums. If `is_estimate` is true, the log has only a sample
/// of the `seen` requests.
fn json_of(summary: &Summary, counted: &Counted) -> Value {
    let groups = |groups: &Groups| -> Value {
        let counts = groups.sorted().into_iter();
        counts.map(|(value, totals)| (value.to_owned(), text::totals_json(totals))).collect()
    };
    json!({
        "from": counted.times.map(|(first, _)| time::shown(first)),
        "to": counted.times.map(|(_, last)| time::shown(last)),
        "all": text::totals_json(&summary.all),
        "is_estimate": summary.all.is_estimate(),
        "seen": counted.seen,
        "lost": counted.lost,
        "outcomes": groups(&summary.outcomes),
        "hosts": groups(&summary.hosts),
        "reasons": groups(&summary.reasons),
        "statuses": groups(&summary.statuses),
        "slowest": summary.slowest.iter().map(text::transaction_json).collect::<Vec<_>>(),
    })
}

fn shown(summary: &Summary, counted: &Counted) -> String {
    let Some((first, last)) = counted.times else { return "the log has no requests".to_owned() };
    let all = &summary.all;
    let quantile = |share| all.elapsed.quantile(share).map_or_else(|| "–".to_owned(), duration);
    let statuses = summary.statuses.sorted();
    let statuses = statuses.iter().take(SHOWN).map(|(status, totals)| {
        format!("{status} {}", share(Some(totals.requests as f64 / all.requests.max(1) as f64)))
    });
    let about = if all.is_estimate() { "about " } else { "" };
    let mut text = format!(
        "{} to {}\n{about}{} requests, {about}{} to clients, {about}{} failed or refused\nhits \
         {}, of bytes {}; median {}, p99 {}\nstatus: {}\n{}\n",
        time::shown(first),
        time::shown(last),
        all.requests,
        ByteSize(all.bytes),
        all.errors,
        share(all.hit_ratio()),
        share(all.byte_ratio()),
        quantile(0.5),
        quantile(0.99),
        statuses.collect::<Vec<_>>().join(", "),
        counted.basis(all),
    );
    let mut table = |name: &str, groups: &Groups, most: usize| {
        let sorted = groups.sorted();
        text.push('\n');
        text.push_str(&text::group_table(name, &sorted[..sorted.len().min(most)]));
    };
    table("outcome", &summary.outcomes, usize::MAX);
    table("host", &summary.hosts, SHOWN);
    table("reason without a hit", &summary.reasons, SHOWN);
    text.push_str("\nslowest\n");
    for transaction in &summary.slowest {
        text.push_str(&text::one(transaction, false));
        text.push('\n');
    }
    text
}
