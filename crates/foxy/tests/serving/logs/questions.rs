//! Fifty questions of operators about a day of 10⁷ requests. Each has one `foxy log` command. The
//! log is a ring with random traffic and with the planted transactions of `planted.jsonl`.
//! `QUESTIONS_ENTRIES` sets the number of entries, and `QUESTIONS_RECORD` the file for the times.

use crate::support::black_box::{binary, number, variable};
use crate::support::run_record::RunRecord;
use foxy_base::{Random, clock};
use foxy_log::lines;
use foxy_log::ring::record::encode;
use foxy_log::ring::writer::RingWriter;
use foxy_log::transaction::{Kept, Text, Transaction};
use std::fs::File;
use std::path::Path;
use std::process::Command;

const REQUESTS: u64 = 10_000_000;
/// 2026-11-25T00:00:00Z.
const DAY: u64 = 1_795_564_800_000;
const DAY_MS: u64 = 86_400_000;

struct Question {
    asks: &'static str,
    /// The query, and further arguments after `; `.
    command: &'static str,
    /// Parts of the answer.
    answer: &'static [&'static str],
}

/// Reads the table of questions: three lines for each, and an empty line.
fn questions() -> Vec<Question> {
    let blocks = include_str!("questions.txt").trim().split("\n\n");
    let read = |block: &'static str| {
        let mut lines = block.lines();
        let asks = lines.next().expect("a question");
        let command = lines.next().expect("a command");
        let answer = lines.map(|line| line.trim()).collect::<Vec<_>>().leak();
        assert!(!answer.is_empty(), "{asks}");
        Question { asks, command, answer }
    };
    blocks.map(read).collect()
}

/// Returns an entry of the usual traffic.
fn usual(random: &mut Random, end: u64, weight: u32) -> Transaction<'static> {
    let (kind, host) = (random.below(100), random.below(20));
    let (outcome, reason, fetched) = match kind {
        0..70 => ("memory-hit", "", None),
        70..85 => ("disk-hit", "", None),
        85..88 => ("revalidated", "stale", Some(304)),
        88..97 => ("miss", "uri-miss", Some(200)),
        _ => ("bypass", "method", Some(200)),
    };
    let wait = fetched.map(|_| 4_000 + random.below(60_000));
    let mut entry = Transaction {
        end,
        elapsed: Some(30 + random.below(200) + wait.unwrap_or(0)),
        status: 200,
        bytes: 300 + random.below(40_000),
        body: Some(100),
        origin_status: fetched,
        origin_ttfb: wait,
        origin_connect: wait.map(|_| 0),
        kept: Kept::Sample,
        weight,
        seen: weight,
        ..Transaction::default()
    };
    let number = random.below(5_000);
    for (name, text) in [
        (Text::Id, format!("{:016x}", random.next_u64())),
        (Text::Client, format!("10.1.{}.{}", random.below(4), random.below(250))),
        (Text::Method, if kind < 97 { "GET" } else { "POST" }.to_owned()),
        (Text::Url, format!("http://www{host}.test/assets/page-{number}.html")),
        (Text::Version, "HTTP/1.1".to_owned()),
        (Text::Outcome, outcome.to_owned()),
        (Text::Reason, reason.to_owned()),
        (Text::Type, "text/html".to_owned()),
        (Text::Agent, "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101".to_owned()),
    ] {
        entry.texts[name as usize] = text.into();
    }
    entry
}

/// Writes the ring of a day with about `entries` entries.
fn write_ring(path: &Path, entries: u64) {
    let planted = include_str!("planted.jsonl").lines().map(|line| {
        let mut entry = lines::parse(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
        (entry.kept, entry.weight, entry.seen) = (Kept::Slow, 1, 1);
        entry
    });
    let mut planted: Vec<_> = planted.collect();
    planted.sort_by_key(|entry| entry.end);
    let mut planted = planted.into_iter().peekable();
    let options = File::options().read(true).write(true).create(true).truncate(true).open(path);
    let mut ring = RingWriter::open(options.expect("a file"), (64 << 20) | (entries * 400));
    let ring = ring.as_mut().expect("a ring");
    let (mut random, mut records) = (Random::new(28), Vec::new());
    for number in 0..entries {
        let end = DAY + number * DAY_MS / entries;
        while let Some(entry) = planted.next_if(|entry| entry.end <= end) {
            encode(&entry, &mut records);
        }
        let weight = u32::try_from(REQUESTS / entries).expect("a weight");
        encode(&usual(&mut random, end, weight), &mut records);
        if records.len() > 1 << 20 {
            ring.append(&records).expect("written");
            records.clear();
        }
    }
    assert!(planted.next().is_none(), "a planted entry is outside the day");
    ring.append(&records).expect("written");
}

#[test]
fn one_command_answers_each_of_fifty_questions() {
    let folder = tempfile::tempdir().expect("a folder");
    let (ring, entries) = (folder.path().join("ring"), number("QUESTIONS_ENTRIES", 4_000));
    write_ring(&ring, entries);
    let questions = questions();
    assert_eq!(questions.len(), 50);
    let mut record = RunRecord::new("cargo test --test serving questions", 28, 1.0);
    record.measure("entries", "ring", entries as f64, "count");
    record.measure("requests", "ring", REQUESTS as f64, "count");
    let (mut wrong, mut slowest) = (Vec::new(), 0.0_f64);
    for Question { asks, command, answer } in questions {
        let mut parts = command.split("; ");
        let mut run = Command::new(binary());
        run.arg("log");
        let mut query = parts.next().unwrap_or_default();
        if query == "stats" {
            run.arg("stats");
            query = parts.next().unwrap_or_default();
        }
        run.arg(&ring).args(["-q", query]);
        run.args(parts.flat_map(|more| more.split(' ')));
        let begun = clock::monotonic();
        let output = run.output().expect("foxy runs");
        let seconds = clock::monotonic().since(begun).as_secs_f64();
        record.measure("seconds", asks, seconds, "s");
        slowest = slowest.max(seconds);
        let said = String::from_utf8_lossy(&output.stdout);
        let missing: Vec<_> = answer.iter().filter(|part| !said.contains(**part)).collect();
        if !missing.is_empty() {
            let errors = String::from_utf8_lossy(&output.stderr);
            wrong.push(format!("{asks}\n{run:?}\nlacks {missing:?}:\n{said}{errors}"));
        }
    }
    record.measure("slowest", "all questions", slowest, "s");
    record.write(variable("QUESTIONS_RECORD").as_deref(), wrong.is_empty());
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
